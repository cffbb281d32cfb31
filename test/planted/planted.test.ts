/**
 * Mistakes of engines, which the judge of the fault lab finds in what real servers answered, whether or not anybody was harmed.
 * Each runs in a copy of the sources. The judge is that of this checkout, since stores and judge decide by the same class.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { judge } from '../../lab/judge/checker.ts'
import { readHistory } from '../../lab/judge/history.ts'

const ROOT = join(import.meta.dirname, '../..')
const NAME = 'src/stores/rules/name.ts'

vi.setConfig({ maxConcurrency: 2 })

interface Mistake {
  readonly engine: string
  readonly what: string
  readonly file: string
  readonly from: string
  readonly to: string
  readonly sharing?: boolean
}

const MISTAKES: readonly Mistake[] = [
  {
    ...{ engine: 'sqlite', what: 'a renewal lasts half as long', file: NAME },
    ...{ from: 'this.#prolong(own, this.now + ttl)', to: 'this.#prolong(own, this.now + ttl / 2)' },
  },
  {
    ...{ engine: 'sqlite', what: 'a slot is given twice', file: NAME, sharing: true },
    ...{ from: 'if (!used.has(slot)) free.push(slot)', to: 'free.push(slot)' },
  },
  {
    ...{ engine: 'mysql', what: 'a release answers that the claim is gone', file: NAME },
    ...{ from: "|| holds) return 'released'", to: "|| holds) return 'gone'" },
  },
  {
    ...{ engine: 'dynamodb', what: 'leases end early', file: NAME },
    ...{ from: 'expires <= now)', to: 'expires <= now + 400)' },
  },
  {
    ...{ engine: 'nats', what: 'all leases have one token', file: NAME },
    ...{ from: 'Math.max(this.#token + 1, this.#floor)', to: 'this.#token || this.#floor' },
  },
  {
    ...{ engine: 'azure-blob', what: 'the largest limit counts', file: NAME, sharing: true },
    ...{ from: 'least = Math.min(least, holder.limit)', to: 'least = Math.max(least, holder.limit)' },
  },
  {
    ...{ engine: 'redis', what: 'a renewal lasts half as long', file: 'src/stores/redis/lua/alone.lua' },
    ...{ from: 'name.ends = now + ttl', to: 'name.ends = now + ttl / 2' },
  },
  {
    ...{ engine: 'redis', what: 'a slot is given twice', file: 'src/stores/redis/lua/shared/group.lua', sharing: true },
    ...{ from: 'digit = digit + 2 ^ bit', to: 'digit = digit' },
  },
  {
    ...{ engine: 'redis-sentinel', what: 'a lease lasts a third as long', file: 'src/stores/redis/lua/alone.lua' },
    ...{ from: "'held', now + ttl,", to: "'held', now + ttl / 3," },
  },
  {
    ...{ engine: 'redlock', what: 'two of five are a majority', file: 'src/stores/quorum/quorum.ts' },
    ...{ from: 'Math.floor(members.length / 2) + 1', to: 'Math.floor(members.length / 2)' },
  },
  {
    ...{ engine: 'postgres', what: 'a renewal lasts half as long', file: 'src/stores/postgres/functions.ts' },
    ...{
      from: `clock_timestamp() + \${ms('o.ttl')} from own o where`,
      to: `clock_timestamp() + \${ms('o.ttl / 2')} from own o where`,
    },
  },
  {
    ...{ engine: 'postgres', what: 'a slot is given twice', file: 'src/stores/postgres/decide.ts', sharing: true },
    ...{ from: '_slots := array[_s.used];', to: '_slots := array[0];' },
  },
  {
    ...{ engine: 'etcd', what: 'a name that is held is granted', file: 'src/stores/etcd/txn.ts' },
    ...{ from: 'absent(keys.all(name)), unchanged', to: 'unchanged' },
  },
  {
    ...{ engine: 'zookeeper', what: 'a holder is overlooked', file: 'src/stores/zookeeper/decision.ts' },
    ...{ from: "node.kind === 'h' || (", to: '(' },
  },
]

test.concurrent.each(MISTAKES)('$engine: $what', { timeout: 300_000, retry: 0 }, async mistake => {
  const copy = planted(mistake)
  try {
    const events = join(copy, 'events.jsonl')
    const run = ['prove', '--lab', mistake.engine, '--duration', '20s', '--events', events]
    const main = join(copy, 'src/cli/main.ts')
    // Its own verdict does not matter: it judges by the copy of the class.
    await promisify(execFile)(process.execPath, [main, ...run, ...(mistake.sharing ? ['--sharing'] : [])]).catch(
      () => {},
    )
    const verdict = judge(readHistory(events))
    const answers = verdict.rows.find(({ promise }) => promise === 'answers')
    expect(answers?.violations.map(({ what }) => what)).not.toEqual([])
    expect(verdict.counts.answers).toBeGreaterThan(100)
  } finally {
    rmSync(copy, { recursive: true })
  }
})

/** A copy of the sources with this mistake, inside the checkout, where packages are found. */
function planted({ file, from, to }: Mistake): string {
  mkdirSync(join(ROOT, '.tools'), { recursive: true })
  const copy = mkdtempSync(join(ROOT, '.tools/planted-'))
  const isSource = (path: string): boolean => !path.includes('node_modules')
  for (const folder of ['src', 'lab', 'script'])
    cpSync(join(ROOT, folder), join(copy, folder), { recursive: true, filter: isSource })
  cpSync(join(ROOT, 'package.json'), join(copy, 'package.json'))
  for (const tool of ['.tools', 'lab/servers/azurite/node_modules']) symlinkSync(join(ROOT, tool), join(copy, tool))
  const text = readFileSync(join(copy, file), 'utf8')
  expect(text.split(from)).toHaveLength(2)
  writeFileSync(
    join(copy, file),
    text.replace(from, () => to),
  )
  return copy
}
