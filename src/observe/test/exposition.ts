import { execFileSync } from 'node:child_process'
import { findBinary } from '../../../lab/servers/binary.ts'

/** Runs Prometheus's own tool; throws with what it says if it finds a mistake. */
export function promtool(args: readonly string[], input = ''): string {
  return execFileSync(findBinary('promtool', 'prometheus').path, args, { input, encoding: 'utf8' })
}

/** The numbers in a text for Prometheus, by metric and labels as they stand there. */
export function numbers(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}
