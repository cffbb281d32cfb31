/** The token of the locks. The ESM and the CommonJS build of this entry share it. */
export const LOCKS: symbol = Symbol.for('holdfast.nestjs.locks')
