import { LeaseError } from '../contract/errors.ts'
import { load, WHERE } from '../stores/url/load.ts'
import { EXIT, Failure } from './failure.ts'
import * as commandLine from './lab-support.ts'

interface Lab {
  prove(args: readonly string[], commandLine: object): Promise<number>
}

/** `holdfast prove`: runs the command of the package holdfast-lab. Returns the exit code. */
export async function prove(args: readonly string[]): Promise<number> {
  if (process.platform !== 'linux')
    throw new Failure(EXIT.unavailable, 'UNSUPPORTED', 'holdfast prove reads /proc, so it runs only on Linux')
  const lab = await loadLab()
  return lab.prove(args, commandLine)
}

/** @throws LeaseError DRIVER_MISSING */
async function loadLab(): Promise<Lab> {
  // In a checkout the sources of the lab run.
  if (import.meta.url.endsWith('.ts')) return import(new URL('../../lab/index.ts', import.meta.url).href)
  const lab = load('holdfast-lab') as Lab | undefined
  if (lab) return lab
  const install = `npm install --save-dev holdfast-lab ${WHERE}`
  throw new LeaseError('DRIVER_MISSING', `holdfast prove needs the package holdfast-lab: ${install}`)
}
