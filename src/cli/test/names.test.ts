import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { markerOf, titleOf } from '../../contract/reserved.ts'
import { detail } from '../../dashboard/detail.ts'
import { type Look, Survey } from '../../dashboard/survey.ts'
import { overview } from '../../dashboard/view.ts'
import { createLocks } from '../../index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { namesFrom } from '../show/names-from.ts'
import { folder, holdfast, holding, start } from './holdfast.ts'

const ODD = [
  'a\u202egnp',
  'b\u200d\u200bc',
  'd\u001b[2J\ne',
  'f\ue0b0',
  'g\u241fh',
  markerOf('nightly'),
  markerOf('i\u200d'),
]

test('every command and the dashboard show odd names alike, without boxes and separators', async () => {
  await holdfast(['run', 'warm', '--', 'true']) // creates the table
  insert(ODD)
  const titles = ODD.map(titleOf)
  const shown = async (text: string): Promise<void> => {
    for (const title of titles) expect(text).toContain(title)
    expect(text).not.toMatch(/(?!\n)[\p{C}\p{Zl}\p{Zp}\u241f]/u)
    expect(text).not.toContain('(ran)')
  }
  const ls = (await holdfast(['ls'])).out
  await shown(ls)
  expect(ls, 'a marker is a state').toMatch(/^ *nightly +ran +alice /m)
  const top = (await holdfast(['top'])).out
  await shown(top)
  expect(top).toMatch(/^ *nightly +alice +ran /m)
  const watching = start(['ls', '--watch'])
  await watching.prints(/ran +nightly {2}alice/)
  watching.kill('SIGINT')
  await shown((await watching.ended).out)
  await using locks = createLocks(sqlite(`${folder}/leases.db`))
  const survey = new Survey(namesFrom(locks, ''))
  const look = await new Promise<Look>(resolve => survey.watch(resolve))
  await survey.close()
  const page = overview(look, 'read', { acquired: 0, lost: 0 }) as { names: { name: string; title: string }[] }
  expect(new Map(page.names.map(({ name, title }) => [name, title]))).toEqual(
    new Map(ODD.map((name, index) => [name, titles[index]])),
  )
  for (const name of ODD) expect(detail(name, look)).toMatchObject({ title: titleOf(name) })
})

test('errors and progress show odd names alike', async () => {
  const name = 'b\u200dc'
  const holder = await holding(name, '--limit', '2')
  const broken = await holdfast(['break', name])
  expect(broken.err).toContain('b\\u{200d}c is shared')
  const busy = await holdfast(['run', name, '--', 'true'])
  expect(busy.err).toContain('b\\u{200d}c')
  const free = await holdfast(['ls', 'z\u200d'])
  expect(free.out).toBe('no name that begins with z\\u{200d} is held\n')
  const reserved = await holdfast(['run', markerOf('job'), '--', 'true'])
  expect(reserved.err).toContain('the name "job\\u{241f}ran" contains U+241F')
  holder.kill('SIGTERM')
  for (const { out, err } of [broken, busy, free, reserved, await holder.ended])
    expect(out + err).not.toMatch(/(?!\n)[\p{C}\u241f]/u)
})

/** Another program writes leases on these names. */
function insert(names: readonly string[]): void {
  const database = new DatabaseSync(join(folder, 'leases.db'))
  const statement = database.prepare('insert into holder values (?, ?, ?, ?, 1000000, 1, 1, 0, ?)')
  for (const name of names) statement.run(name, 'a'.repeat(32), 'alice', '', Date.now() + 1_000_000)
  database.close()
}
