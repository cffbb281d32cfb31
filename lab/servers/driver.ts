import { createRequire } from 'node:module'
import { LeaseError } from '../../src/index.ts'

/**
 * The client library that controls a server. It is loaded on demand, because no dependency brings it.
 * @throws LeaseError DRIVER_MISSING
 */
export function driver<Module>(name: string): Module {
  try {
    return createRequire(import.meta.url)(name)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'MODULE_NOT_FOUND' || !message.includes(`'${name}'`)) throw error
    throw new LeaseError(
      'DRIVER_MISSING',
      `the lab controls a server of this kind with ${name}: npm install --save-dev ${name} where holdfast-lab is installed`,
    )
  }
}
