import { LeaseError } from '../../src/contract/errors.ts'
import { load, WHERE } from '../../src/stores/shared/load.ts'

/**
 * A client library by which a server is asked how it is. Loaded when it is needed, since the package requires none.
 * @throws LeaseError DRIVER_MISSING
 */
export function driver<Module>(name: string): Module {
  const module = load(name) as Module | undefined
  if (module) return module
  throw new LeaseError('DRIVER_MISSING', `a server of this kind is asked how it is by ${name}: npm i ${name} ${WHERE}`)
}
