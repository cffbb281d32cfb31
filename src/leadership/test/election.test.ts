import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startRedis } from '../../../lab/servers/redis.ts'
import { NODE, until } from '../../cli/test/holdfast.ts'
import { type Entry, Ledger } from './ledger.ts'

const TTL = 1_500
const CANDIDATE = fileURLToPath(new URL('./candidate.ts', import.meta.url))

let folder: string
let ledger: Ledger
let candidates: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-leadership-'))
  ledger = new Ledger(join(folder, 'ledger.db'))
})

afterEach(async () => {
  const ended = candidates.map(async child => child.exitCode ?? child.signalCode ?? once(child, 'exit'))
  for (const child of candidates) child.kill('SIGKILL')
  await Promise.all(ended)
  candidates = []
  ledger[Symbol.dispose]()
  rmSync(folder, { recursive: true, force: true })
})

function candidate(url: string): ChildProcess {
  const [node = '', ...options] = NODE
  const args = [...options, CANDIDATE, url, join(folder, 'ledger.db'), String(TTL)]
  const child = spawn(node, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  candidates.push(child)
  return child
}

/** Resolves once there is such an entry after this many. */
async function entry(what: Entry['what'], matches: (entry: Entry) => boolean, after = 0): Promise<Entry> {
  let found: Entry | undefined
  await until(
    () => {
      found = ledger
        .entries()
        .slice(after)
        .find(each => each.what === what && matches(each))
      return found !== undefined
    },
    () => `${what} in ${JSON.stringify(ledger.entries().slice(-20), (_, value) => String(value))}`,
  )
  return found as Entry
}

function childOf({ pid }: Entry): ChildProcess {
  return candidates.find(child => child.pid === pid) ?? expect.fail(`no candidate ${pid}`)
}

const engines: Readonly<Record<string, () => Promise<{ url: string } & AsyncDisposable>>> = {
  sqlite: async () => ({ url: `sqlite:${join(folder, 'leases.db')}`, [Symbol.asyncDispose]: async () => {} }),
  redis: startRedis,
}

describe.each(Object.keys(engines))('processes that compete over %s', engine => {
  test('lead one at a time, through stops, kills and handovers, and fenced writes stay in order', async () => {
    await using server = await (engines[engine] as (typeof engines)[string])()
    for (let count = 0; count < 3; count += 1) candidate(server.url)

    for (let round = 0; round < 2; round += 1) {
      // The leader is stopped for longer than its ttl, right before a write.
      const first = await entry('write', () => true, ledger.entries().length)
      childOf(first).kill('SIGUSR2')
      await entry(
        'stops',
        ({ pid }) => pid === first.pid,
        ledger.entries().findLastIndex(each => each.what === 'begins'),
      )
      const second = await entry('write', ({ token }) => token > first.token)
      childOf(first).kill('SIGCONT')
      await entry('refused', ({ token }) => token === first.token)

      // The leader is killed: the next one leads within ttl + 1 s, or 1 s later on a machine that stops now and then.
      await entry('write', ({ token }) => token === second.token)
      const killedAt = Number(process.hrtime.bigint()) / 1e6
      childOf(second).kill('SIGKILL')
      const third = await entry('begins', ({ token }) => token > second.token)
      expect(third.at - killedAt).toBeLessThan(TTL + 2_000)
      candidate(server.url)

      // The leader hands over: it ends its work, and the next one begins before the ttl would have ended.
      const leader = childOf(third)
      await entry('write', ({ token }) => token === third.token)
      leader.kill('SIGTERM')
      const fourth = await entry('begins', ({ token }) => token > third.token)
      const ended = await entry('ends', ({ token }) => token === third.token)
      expect(fourth.at).toBeGreaterThan(ended.at)
      expect(fourth.at - ended.at).toBeLessThan(TTL)
      expect(leader.exitCode ?? (await once(leader, 'exit'))[0]).toBe(0)
      candidate(server.url)
    }

    const all = ledger.entries()
    const writes = all.filter(({ what }) => what === 'write')
    for (const [index, { token }] of writes.entries())
      expect(token >= (writes[index - 1]?.token ?? 0n), 'a write of an older leader after a newer one').toBe(true)
    // Bodies of leaders that were neither stopped nor killed do not overlap, fence or not.
    const terms = Map.groupBy(all, ({ token }) => token)
    const tokens = [...terms.keys()].sort((a, b) => Number(a - b))
    expect(tokens.length).toBeGreaterThanOrEqual(7)
    for (const [index, token] of tokens.entries()) {
      const term = terms.get(token) ?? []
      const [next] = terms.get(tokens[index + 1] ?? -1n) ?? []
      const end = term.find(({ what }) => what === 'ends')
      const wasStopped = term.some(({ what }) => what === 'stops')
      if (end && next && !wasStopped) expect(end.at).toBeLessThan(next.at)
    }
  })
})
