import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { until } from '../../../../lab/servers/until.ts'
import { failureOf } from '../../../../test/support.ts'
import { fileFence, fileMarks } from '../../files/index.ts'
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
  await fileFence().write(lease(7), path, 'seven')
  await fileFence().write(lease(7), path, Buffer.from('seven again'))
  await expect(fileFence().write(lease(6), path, 'six')).rejects.toEqual(stale(6n, 7n))
  expect(text()).toBe('seven again')
  await fileFence().write(lease(8), path, 'eight')
  expect(text()).toBe('eight')
  expect(readdirSync(folder).toSorted()).toEqual(['.holdfast-fence.db', 'ledger'])
})

test('after a touch no older holder writes, even before the first write', async () => {
  await fileFence().write(lease(6), path, 'six')
  await fileFence().touch(lease(7), path)
  await expect(fileFence().write(lease(6), path, 'six again')).rejects.toEqual(stale(6n, 7n))
  await expect(fileFence().touch(lease(6), path)).rejects.toEqual(stale(6n, 7n))
  expect(text()).toBe('six')
})

test('an epoch counts before the token', async () => {
  await fileFence().write(lease(900), path, 'of the old store')
  await fileFence({ epoch: 1 }).write(lease(1), path, 'of the new store')
  const error = await failureOf(fileFence().write(lease(901), path, 'late'))
  expect(error.message).toContain(`"${path}" has seen 1:1`)
  expect(text()).toBe('of the new store')
})

test('tokens above the exact integers are distinguished', async () => {
  const [one, other] = [2n ** 53n, 2n ** 53n + 1n].map(token => ({ name: 'a', token }))
  await fileFence().write(other as typeof one & object, path, 'newer')
  await expect(fileFence().write(one as typeof one & object, path, 'older')).rejects.toEqual(
    stale(2n ** 53n, 2n ** 53n + 1n),
  )
})

test('a partial write of a killed holder is removed by the next, and was never visible', async () => {
  await fileFence().write(lease(1), path, 'whole')
  const child = new Child(new URL('half-written.ts', import.meta.url), path, '2')
  expect(await child.line()).toBe('half')
  await child[Symbol.asyncDispose]()
  const temporary = (): string[] => readdirSync(folder).filter(name => name.startsWith('.fence-'))
  expect(temporary()).toHaveLength(1)
  expect(text()).toBe('whole')
  await fileFence().touch(lease(3), path)
  expect(temporary()).toEqual([])
})

test('a holder that was paused during its write is refused once the next has written', async () => {
  await fileFence().write(lease(1), path, 'whole')
  await using child = new Child(new URL('half-written.ts', import.meta.url), path, '2')
  expect(await child.line()).toBe('half')
  await child.pause()
  await fileFence().write(lease(3), path, 'by the next')
  child.resume()
  child.tell('go')
  expect(await child.line()).toBe('STALE_TOKEN')
  expect(text()).toBe('by the next')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('an aborted write leaves the file unchanged, and rejects with the reason', async () => {
  await fileFence().write(lease(1), path, 'whole')
  const controller = new AbortController()
  async function* endless(): AsyncGenerator<string> {
    for (;;) {
      yield 'more'
      controller.abort(new Error('enough'))
      await sleep(1)
    }
  }
  const error = await failureOf(fileFence().write(lease(1), path, endless(), { signal: controller.signal }))
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
  await fileFence().write(lease(1), path, parts())
  expect([text(), statSync(path).mode & 0o777]).toEqual(['600', 0o600])
})

test('a folder with two names has one mark for a file', async () => {
  const link = `${folder}-link`
  symlinkSync(folder, link)
  await fileFence().write(lease(7), path, 'seven')
  await expect(fileFence().write(lease(6), join(link, 'ledger'), 'six')).rejects.toEqual(stale(6n, 7n))
})

test('marks may be kept elsewhere, for files of several folders', async () => {
  const marks = join(folder, 'marks.db')
  for (const name of ['a', 'b']) {
    mkdirSync(join(folder, name))
    await fileFence({ marksPath: marks }).write(lease(7), join(folder, name, 'ledger'), name)
    expect(readdirSync(join(folder, name))).toEqual(['ledger'])
  }
  await fileFence({ marksPath: marks }).write(lease(8), join(folder, 'a/ledger'), 'eight')
  await fileFence({ marksPath: marks }).write(lease(7), join(folder, 'b/ledger'), 'seven')
  await expect(fileFence({ marksPath: marks }).write(lease(7), join(folder, 'a/ledger'), 'seven')).rejects.toEqual(
    stale(7n, 8n),
  )
})

test('marks that exist and have two names hold one mark for a file', async () => {
  const marks = join(folder, 'marks.db')
  mkdirSync(join(folder, 'other'))
  symlinkSync('../marks.db', join(folder, 'other/link.db'))
  await fileFence({ marksPath: marks }).touch(lease(1), path)
  await fileFence({ marksPath: join(folder, 'other/link.db') }).write(lease(7), path, 'seven')
  await expect(fileFence({ marksPath: marks }).write(lease(6), path, 'six')).rejects.toEqual(stale(6n, 7n))
  await fileFence({ marksPath: marks }).write(lease(8), path, 'eight')
  const late = fileFence({ marksPath: join(folder, 'other/link.db') }).write(lease(7), path, 'seven')
  await expect(late).rejects.toEqual(stale(7n, 8n))
  expect((await fileMarks(marks).list()).map(({ resource }) => resource)).toEqual(['ledger'])
})

test('while another process is paused in its rename, writes are refused within wait', async () => {
  await fileFence().touch(lease(1), path)
  const other = new DatabaseSync(join(folder, '.holdfast-fence.db'))
  other.exec('begin immediate')
  const error = await failureOf(fileFence({ wait: 50 }).write(lease(2), path, 'two'))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  const waiting = fileFence().write(lease(2), path, 'two')
  other.close()
  await waiting
  expect(text()).toBe('two')
})

test('a write succeeds once while another process reads the marks', async () => {
  await fileFence().write(lease(1), path, 'one')
  const reader = new DatabaseSync(join(folder, '.holdfast-fence.db'))
  reader.exec('begin')
  reader.prepare('select * from holdfast_fence').all()
  await fileFence({ wait: 2_000 }).write(lease(1), path, 'two')
  reader.close()
  expect(text()).toBe('two')
})

test.each<[string, () => Promise<unknown>]>([
  ['an empty path', () => fileFence().write(lease(1), '', 'x')],
  ['a name that is too long', () => fileFence().touch(lease(1), join(folder, 'x'.repeat(256)))],
  ['a folder', () => fileFence().write(lease(1), folder, 'x')],
  ['a folder that does not exist', () => fileFence().write(lease(1), join(folder, 'no/ledger'), 'x')],
  [
    'a link',
    () => {
      symlinkSync('elsewhere', path)
      return fileFence().write(lease(1), path, 'x')
    },
  ],
  ['a token that is a number', () => fileFence().write({ name: 'a', token: 1 as never }, path, 'x')],
  ['a token above 2^63', () => fileFence().write({ name: 'a', token: 2n ** 63n }, path, 'x')],
  ['an option that nobody knows', async () => fileFence({ mark: 'x' } as object).write(lease(1), path, 'x')],
  ['no data', () => fileFence().write(lease(1), path, undefined as never)],
  ['a negative wait', async () => fileFence({ wait: -1 }).write(lease(1), path, 'x')],
  [
    'marks that are a link to themselves',
    () => {
      symlinkSync('loop.db', join(folder, 'loop.db'))
      return fileFence({ marksPath: join(folder, 'loop.db') }).write(lease(1), path, 'x')
    },
  ],
  ['marks that are a folder', () => fileFence({ marksPath: folder }).write(lease(1), path, 'x')],
  [
    'marks in a database of something else',
    () => {
      const marks = join(folder, 'other.db')
      const other = new DatabaseSync(marks)
      other.exec('create table mine (id)')
      other.close()
      return fileFence({ marksPath: marks }).write(lease(1), path, 'x')
    },
  ],
])('%s is refused at once', async (_, write) => {
  expect((await failureOf(write())).code).toBe('INVALID_ARGUMENT')
})

describe('marks', () => {
  test('of a folder are listed, advanced to another epoch, and pruned', async () => {
    await fileFence().write(lease(900), path, 'of the old store')
    await fileFence().touch(lease(5), join(folder, 'other'))
    const marks = fileMarks(folder)
    const [mark, ...others] = await marks.list('led')
    expect(mark).toEqual({ resource: 'ledger', epoch: 0, token: 900n, raisedAt: expect.any(Number) })
    expect(Math.abs((mark?.raisedAt ?? 0) - Date.now())).toBeLessThan(60_000)
    expect(others).toEqual([])

    expect(await marks.advance('ledger')).toBe(1)
    expect(await marks.advance('nobody')).toBeUndefined()
    await expect(fileFence().write(lease(901), path, 'late')).rejects.toEqual(stale(901n, 0n))
    expect(text()).toBe('of the old store')
    await fileFence({ epoch: 1 }).write(lease(1), path, 'of the new store')

    expect(await marks.prune(3_600_000)).toBe(0)
    await until('the clock has moved', async () => (await marks.prune(0, 'led')) > 0)
    expect((await marks.list()).map(({ resource }) => resource)).toEqual(['other'])
    await fileFence().write(lease(6), path, 'of whom nobody knows that it is old')
  })

  test('are not raised again by a second write of the same holder', async () => {
    await fileFence().write(lease(1), path, 'one')
    const before = await fileMarks(folder).list()
    await sleep(2)
    await fileFence().write(lease(1), path, 'one again')
    expect(await fileMarks(folder).list()).toEqual(before)
  })

  test('in another place are those of their database, and other fences can raise them', async () => {
    const elsewhere = join(folder, 'marks.db')
    await fileFence({ marksPath: elsewhere }).touch(lease(7), path)
    const marks = fileMarks(elsewhere)
    await expect(marks.raise('ledger', { epoch: 0, token: 6n })).rejects.toEqual(stale(6n, 7n))
    await marks.raise('ledger', { epoch: 0, token: 8n })
    await expect(fileFence({ marksPath: elsewhere }).touch(lease(7), path)).rejects.toEqual(stale(7n, 8n))
  })

  test('wait for a process that has locked them', async () => {
    await fileFence().touch(lease(1), path)
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
        await fileFence({ wait: 30_000 }).write(lease(token), file, slowly())
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
  await fileFence().write(lease(0), path, '0')
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
