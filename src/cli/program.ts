import { readFileSync } from 'node:fs'
import type { WarningCode } from '../index.ts'
import { seeHelp, suggest } from './arguments.ts'
import { EXIT, Usage } from './failure.ts'
import { Output } from './output.ts'

const COMMANDS = new Map<string, () => Promise<(args: readonly string[]) => Promise<number>>>(
  Object.entries({
    run: async () => (await import('./run/run.ts')).run,
    elect: async () => (await import('./run/elect.ts')).elect,
    ls: async () => (await import('./show/ls.ts')).ls,
    top: async () => (await import('./show/top/top.ts')).top,
    inspect: async () => (await import('./show/inspect.ts')).inspect,
    break: async () => (await import('./show/break.ts')).breakLease,
    doctor: async () => (await import('./doctor/doctor.ts')).doctor,
    dashboard: async () => (await import('./show/dashboard.ts')).serveDashboard,
    migrate: async () => (await import('./show/migrate.ts')).migrate,
    ttl: async () => (await import('./show/ttl.ts')).ttl,
    fence: async () => (await import('./show/fence.ts')).fence,
    demo: async () => (await import('./demo.ts')).demo,
    prove: async () => (await import('./prove.ts')).prove,
  }),
)

/** Runs `holdfast` with these arguments. Returns the exit code. `manifest` is package.json, which has the version. */
export async function main([name = '', ...args]: readonly string[], manifest: URL): Promise<number> {
  const dashes = args.indexOf('--')
  const own = dashes < 0 ? args : args.slice(0, dashes)
  // A closed pipe (`holdfast ls | head -1`) is not an error, and must not end a command that runs.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const quiet = own.some(word => /^(--quiet|-\w*q\w*)$/.test(word))
  const output = new Output({ json: own.includes('--json'), quiet })
  // Node prints warnings in its own format. The one about node:sqlite in Node 22 does not concern users, and `elect` itself
  // reports a command that failed.
  process.removeAllListeners('warning').on('warning', ({ name, message, code }: Error & { code?: WarningCode }) => {
    if (name !== 'ExperimentalWarning' && code !== 'HOLDFAST_TERM_FAILED') output.warn('warning', message)
  })
  try {
    if (name === '--version' || name === '-V') return version(manifest)
    if (name === '--help' || name === '-h' || name === 'help') return await help(args[0])
    if (own.includes('--help') || own.includes('-h')) return await help(name)
    if (args.length === 0 && (name === '' || name === 'fence')) {
      await help(name || undefined)
      return EXIT.usage // a script with an empty variable has not run its job
    }
    const command = await commandOf(name)
    return await command(args)
  } catch (error) {
    return output.fail(error)
  }
}

async function commandOf(name: string): Promise<(args: readonly string[]) => Promise<number>> {
  const load = COMMANDS.get(name)
  if (load) return load()
  const known = [...COMMANDS.keys()]
  if (name === '' || name.startsWith('-')) {
    throw new Usage(`a command is missing: expected ${known.join(', ')}; ${seeHelp('')}`)
  }
  throw new Usage(`there is no command ${name}${suggest(name, known)}; ${seeHelp('')}`)
}

function version(manifest: URL): number {
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  process.stdout.write(`${version}\n`)
  return 0
}

async function help(command: string | undefined): Promise<number> {
  const { helpFor } = await import('./help/help.ts')
  process.stdout.write(helpFor(command))
  return 0
}
