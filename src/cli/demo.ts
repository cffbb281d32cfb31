import { parse, seeHelp } from './arguments.ts'
import { EXIT, Failure, Usage } from './failure.ts'

/** `holdfast demo`: runs five replicas of one job, each in its own process. Returns the exit code. */
export async function demo(args: readonly string[]): Promise<number> {
  if (parse('demo', [...args], {}).positionals.length > 0) throw new Usage(`demo has no arguments; ${seeHelp('demo')}`)
  if (process.platform === 'win32')
    throw new Failure(EXIT.unavailable, 'UNSUPPORTED', 'holdfast demo pauses processes, which Windows cannot')
  const isSource = import.meta.url.endsWith('.ts')
  await import(new URL(isSource ? '../../examples/invoices/demo.ts' : './demo/demo.js', import.meta.url).href)
  return Number(process.exitCode ?? 0)
}
