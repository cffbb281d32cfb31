import { execFileSync } from 'node:child_process'
import { findBinary } from '../../../lab/servers/binary.ts'

/** Runs Prometheus's own tool. Throws with its output if it finds a mistake. */
export function promtool(args: readonly string[], input = ''): string {
  return execFileSync(findBinary('promtool', 'prometheus').path, args, { input, encoding: 'utf8' })
}

/** The values in Prometheus's text format, by series. */
export function numbers(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}
