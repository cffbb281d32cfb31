import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { until } from '../../../../lab/servers/until.ts'
import { failureOf } from '../../../../test/support.ts'
import { fencedTouch, fencedWrite, fileMarks } from '../../files/index.ts'
import { Child } from './child.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = newFolder('files')
  path = join(folder, 'ledger')
})

const lease = (token: number): { name: string; token: bigint } => ({ name: 'ledger', token: BigInt(token) })
const text = (): string => readFileSync(path, 'utf8')
const stale = (token: bigint, highest: bigint): object =>
  expect.objectContaining({ code: 'STALE_TOKEN', token, highest })

test('the newest holder writes any number of times, an older one never again', async () => {
  await fencedWrite(path, 'seven', lease(7))
  await fencedWrite(path, Buffer.from('seven again'), lease(7))
  await expect(fencedWrite(path, 'six', lease(6))).rejects.toEqual(stale(6n, 7n))
  expect(text()).toBe('seven again')
  await fencedWrite(path, 'eight', lease(8))
  expect(text()).toBe('eight')
  expect(readdirSync(folder).toSorted()).toEqual(['.holdfast-fence.db', 'ledger'])
})

test('after a touch no older holder writes, even before the first write', async () => {
  await fencedWrite(path, 'six', lease(6))
  await fencedTouch(path, lease(7))
  await expect(fencedWrite(path, 'six again', lease(6))).rejects.toEqual(stale(6n, 7n))
  await expect(fencedTouch(path, lease(6))).rejects.toEqual(stale(6n, 7n))
  expect(text()).toBe('six')
})

test('an epoch counts before the token', async () => {
  await fencedWrite(path, 'of the old store', lease(900))
  await fencedWrite(path, 'of the new store', lease(1), { epoch: 1 })
  const error = await failureOf(fencedWrite(path, 'late', lease(901)))
  expect(error.message).toContain(`"${path}" has seen 1:1`)
  expect(text()).toBe('of the new store')
})

test('tokens above the exact integers are distinguished', async () => {
  const [one, other] = [2n ** 53n, 2n ** 53n + 1n].map(token => ({ name: 'a', token }))
  await fencedWrite(path, 'newer', other as typeof one & object)
  await expect(fencedWrite(path, 'older', one as typeof one & object)).rejects.toEqual(stale(2n ** 53n, 2n ** 53n + 1n))
})

test('a partial write of a killed holder is removed by the next, and was never visible', async () => {
  await fencedWrite(path, 'whole', lease(1))
  const child = new Child(new URL('half-written.ts', import.meta.url), path, '2')
  expect(await child.line()).toBe('half')
  await child[Symbol.asyncDispose]()
  const temporary = (): string[] => readdirSync(folder).filter(name => name.startsWith('.fence-'))
  expect(temporary()).toHaveLength(1)
  expect(text()).toBe('whole')
  await fencedTouch(path, lease(3))
  expect(temporary()).toEqual([])
})

test('a holder that was paused during its write is refused once the next has written', async () => {
  await fencedWrite(path, 'whole', lease(1))
  await using child = new Child(new URL('half-written.ts', import.meta.url), path, '2')
  expect(await child.line()).toBe('half')
  await child.pause()
  await fencedWrite(path, 'by the next', lease(3))
  child.resume()
  child.tell('go')
  expect(await child.line()).toBe('STALE_TOKEN')
  expect(text()).toBe('by the next')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('an aborted write leaves the file unchanged, and rejects with the reason', async () => {
  await fencedWrite(path, 'whole', lease(1))
  const controller = new AbortController()
  async function* endless(): AsyncGenerator<string> {
    for (;;) {
      yield 'more'
      controller.abort(new Error('enough'))
      await sleep(1)
    }
  }
  const error = await failureOf(fencedWrite(path, endless(), lease(1), { signal: controller.signal }))
  expect(error.message).toBe('enough')
  expect(text()).toBe('whole')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('the mode of a file does not change, and its temporary file has it too', async () => {
  writeFileSync(path, 'before')
  chmodSync(path, 0o600)
  async function* parts(): AsyncGenerator<string> {
    for (const name of readdirSync(folder).filter(found => found.startsWith('.fence-')))
      yield (statSync(join(folder, name)).mode & 0o777).toString(8)
  }
  await fencedWrite(path, parts(), lease(1))
  expect([text(), statSync(path).mode & 0o777]).toEqual(['600', 0o600])
})

test('a folder with two names has one mark for a file', async () => {
  const link = `${folder}-link`
  symlinkSync(folder, link)
  await fencedWrite(path, 'seven', lease(7))
  await expect(fencedWrite(join(link, 'ledger'), 'six', lease(6))).rejects.toEqual(stale(6n, 7n))
})

test('marks may be kept elsewhere, for files of several folders', async () => {
  const marks = join(folder, 'marks.db')
  for (const name of ['a', 'b']) {
    mkdirSync(join(folder, name))
    await fencedWrite(join(folder, name, 'ledger'), name, lease(7), { marks })
    expect(readdirSync(join(folder, name))).toEqual(['ledger'])
  }
  await fencedWrite(join(folder, 'a/ledger'), 'eight', lease(8), { marks })
  await fencedWrite(join(folder, 'b/ledger'), 'seven', lease(7), { marks })
  await expect(fencedWrite(join(folder, 'a/ledger'), 'seven', lease(7), { marks })).rejects.toEqual(stale(7n, 8n))
})

test('marks that exist and have two names hold one mark for a file', async () => {
  const marks = join(folder, 'marks.db')
  mkdirSync(join(folder, 'other'))
  symlinkSync('../marks.db', join(folder, 'other/link.db'))
  await fencedTouch(path, lease(1), { marks })
  await fencedWrite(path, 'seven', lease(7), { marks: join(folder, 'other/link.db') })
  await expect(fencedWrite(path, 'six', lease(6), { marks })).rejects.toEqual(stale(6n, 7n))
  await fencedWrite(path, 'eight', lease(8), { marks })
  const late = fencedWrite(path, 'seven', lease(7), { marks: join(folder, 'other/link.db') })
  await expect(late).rejects.toEqual(stale(7n, 8n))
  expect((await fileMarks(marks).list()).map(({ resource }) => resource)).toEqual(['ledger'])
})

test('while another process is paused in its rename, writes are refused within wait', async () => {
  await fencedTouch(path, lease(1))
  const other = new DatabaseSync(join(folder, '.holdfast-fence.db'))
  other.exec('begin immediate')
  const error = await failureOf(fencedWrite(path, 'two', lease(2), { wait: 50 }))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  const waiting = fencedWrite(path, 'two', lease(2))
  other.close()
  await waiting
  expect(text()).toBe('two')
})

test('a write succeeds once while another process reads the marks', async () => {
  await fencedWrite(path, 'one', lease(1))
  const reader = new DatabaseSync(join(folder, '.holdfast-fence.db'))
  reader.exec('begin')
  reader.prepare('select * from holdfast_fence').all()
  await fencedWrite(path, 'two', lease(1), { wait: 2_000 })
  reader.close()
  expect(text()).toBe('two')
})

test.each<[string, () => Promise<unknown>]>([
  ['an empty path', () => fencedWrite('', 'x', lease(1))],
  ['a folder', () => fencedWrite(folder, 'x', lease(1))],
  ['a folder that does not exist', () => fencedWrite(join(folder, 'no/ledger'), 'x', lease(1))],
  [
    'a link',
    () => {
      symlinkSync('elsewhere', path)
      return fencedWrite(path, 'x', lease(1))
    },
  ],
  ['a token that is a number', () => fencedWrite(path, 'x', { name: 'a', token: 1 as never })],
  ['a token above 2^63', () => fencedWrite(path, 'x', { name: 'a', token: 2n ** 63n })],
  ['an option that nobody knows', () => fencedWrite(path, 'x', lease(1), { mark: 'x' } as object)],
  ['no data', () => fencedWrite(path, undefined as never, lease(1))],
  ['a negative wait', () => fencedWrite(path, 'x', lease(1), { wait: -1 })],
  [
    'marks that are a link to themselves',
    () => {
      symlinkSync('loop.db', join(folder, 'loop.db'))
      return fencedWrite(path, 'x', lease(1), { marks: join(folder, 'loop.db') })
    },
  ],
  ['marks that are a folder', () => fencedWrite(path, 'x', lease(1), { marks: folder })],
  [
    'marks in a database of something else',
    () => {
      const marks = join(folder, 'other.db')
      const other = new DatabaseSync(marks)
      other.exec('create table mine (id)')
      other.close()
      return fencedWrite(path, 'x', lease(1), { marks })
    },
  ],
])('%s is refused at once', async (_, write) => {
  expect((await failureOf(write())).code).toBe('INVALID_ARGUMENT')
})

describe('marks', () => {
  test('of a folder are listed, advanced to another epoch, and pruned', async () => {
    await fencedWrite(path, 'of the old store', lease(900))
    await fencedTouch(join(folder, 'other'), lease(5))
    const marks = fileMarks(folder)
    const [mark, ...others] = await marks.list('led')
    expect(mark).toEqual({ resource: 'ledger', epoch: 0, token: 900n, raisedAt: expect.any(Number) })
    expect(Math.abs((mark?.raisedAt ?? 0) - Date.now())).toBeLessThan(60_000)
    expect(others).toEqual([])

    expect(await marks.advance('ledger')).toBe(1)
    expect(await marks.advance('nobody')).toBeUndefined()
    await expect(fencedWrite(path, 'late', lease(901))).rejects.toEqual(stale(901n, 0n))
    expect(text()).toBe('of the old store')
    await fencedWrite(path, 'of the new store', lease(1), { epoch: 1 })

    expect(await marks.prune(3_600_000)).toBe(0)
    await until('the clock has moved', async () => (await marks.prune(0, 'led')) > 0)
    expect((await marks.list()).map(({ resource }) => resource)).toEqual(['other'])
    await fencedWrite(path, 'of whom nobody knows that it is old', lease(6))
  })

  test('are not raised again by a second write of the same holder', async () => {
    await fencedWrite(path, 'one', lease(1))
    const before = await fileMarks(folder).list()
    await sleep(2)
    await fencedWrite(path, 'one again', lease(1))
    expect(await fileMarks(folder).list()).toEqual(before)
  })

  test('in another place are those of their database, and other fences can raise them', async () => {
    const elsewhere = join(folder, 'marks.db')
    await fencedTouch(path, lease(7), { marks: elsewhere })
    const marks = fileMarks(elsewhere)
    await expect(marks.raise('ledger', { epoch: 0, token: 6n })).rejects.toEqual(stale(6n, 7n))
    await marks.raise('ledger', { epoch: 0, token: 8n })
    await expect(fencedTouch(path, lease(7), { marks: elsewhere })).rejects.toEqual(stale(7n, 8n))
  })

  test('wait for a process that has locked them', async () => {
    await fencedTouch(path, lease(1))
    const other = new DatabaseSync(join(folder, '.holdfast-fence.db'))
    other.exec('begin immediate')
    const advancing = fileMarks(folder).advance('ledger')
    await sleep(20)
    other.close()
    expect(await advancing).toBe(1)
  })

  test.each<[string, () => Promise<unknown>]>([
    ['no path', async () => fileMarks('')],
    ['a folder without marks', () => fileMarks(folder).list()],
    ['a folder that does not exist', () => fileMarks(join(folder, 'no')).advance('ledger')],
    [
      'a file of something else',
      () => {
        writeFileSync(path, 'mine, and longer than the header of a database is'.repeat(20))
        return fileMarks(path).advance('ledger')
      },
    ],
    [
      'a file of one byte',
      () => {
        writeFileSync(path, '7')
        return fileMarks(path).advance('ledger')
      },
    ],
  ])('at %s are refused, and nothing is made or changed', async (_, call) => {
    expect((await failureOf(call())).code).toBe('INVALID_ARGUMENT')
    const files = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'))
    expect(files.filter(content => !/^(mine|7)/.test(content))).toEqual([])
  })
})

const schedule = fc.array(fc.record({ token: fc.integer({ min: 1, max: 20 }), pause: fc.nat(6) }), {
  minLength: 2,
  maxLength: 50,
})

test('with many pausing writers, readers never see an older write after a newer one', async () => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(schedule, async writers => {
      const file = join(folder, `property ${run++}`)
      let highest = 0
      const one = async ({ token, pause }: (typeof writers)[number]): Promise<number> => {
        async function* slowly(): AsyncGenerator<string> {
          yield String(token)
          await sleep(pause)
          yield ' whole'
        }
        await sleep(pause)
        const before = highest
        await fencedWrite(file, slowly(), lease(token), { wait: 30_000 })
        expect(token).toBeGreaterThanOrEqual(before)
        const [seen, whole] = readFileSync(file, 'utf8').split(' ')
        expect(whole).toBe('whole')
        expect(Number(seen)).toBeGreaterThanOrEqual(highest)
        highest = Math.max(highest, token)
        return token
      }
      const outcomes = await Promise.allSettled(writers.map(one))
      const reasons = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(reasons.filter(reason => reason.code !== 'STALE_TOKEN')).toEqual([])
      expect(readFileSync(file, 'utf8')).toBe(`${Math.max(...writers.map(({ token }) => token))} whole`)
    }),
    { numRuns: 20 },
  )
})

test('concurrent processes are refused only as stale, nothing falls back, and one may be killed', async () => {
  await fencedWrite(path, '0', lease(0))
  const children = Array.from(
    { length: 4 },
    (_, index) => new Child(new URL('hammer.ts', import.meta.url), path, String(index)),
  )
  const [killed, ...others] = children as [Child, ...Child[]]
  let highest = 0
  const look = (): number => {
    const seen = Number(text())
    expect(seen).toBeGreaterThanOrEqual(highest)
    highest = seen
    return seen
  }
  try {
    expect(await Promise.all(children.map(child => child.line()))).toEqual(Array(4).fill('started'))
    await until('they write', () => look() > 40)
    await killed[Symbol.asyncDispose]()
    const done = Promise.all(others.map(child => child.line()))
    let isDone = false
    done.finally(() => (isDone = true)).catch(() => {})
    await until('the others go on', () => look() > 0 && isDone, { limit: 25_000 })
    expect(await done).toEqual(['done', 'done', 'done'])
  } finally {
    await Promise.all(children.map(child => child[Symbol.asyncDispose]()))
  }
})
