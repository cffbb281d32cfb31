import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { events as channels } from '../src/contract/events.ts'

const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8')

/** The fields of each event's payload, as `LeaseEvents` declares them. */
function declared(): Record<string, string[]> {
  const [, body = ''] = /export interface LeaseEvents \{\n(.*?)\n\}/s.exec(read('src/contract/events.ts')) ?? []
  const code = body.replace(/\/\*\*.*?\*\//gs, '')
  const events = [...code.matchAll(/^ {2}(\w+): (Pick<Claim, [^>]*>|\{.*?\})$/gms)]
  return Object.fromEntries(
    events.map(([, name = '', type = '']) => {
      const fields = type.startsWith('Pick') ? type.matchAll(/'(\w+)'/g) : type.matchAll(/readonly (\w+):/g)
      return [name, [...fields].map(([, field = '']) => field).sort()]
    }),
  )
}

/** The fields in the tables of docs/reference/events.md. */
function documented(): Record<string, string[]> {
  const sections = read('docs/reference/events.md').split(/^### /m).slice(1)
  return Object.fromEntries(
    sections.map(section => {
      const [, name = ''] = /^`(\w+)`\n/.exec(section) ?? []
      const [, table = ''] = /\| field \| type \| meaning \|\n.*\n((?:\|.*\n)*)/.exec(section) ?? []
      return [name, [...table.matchAll(/^\| `(\w+)` \| \S.* \| \S.* \|$/gm)].map(([, field = '']) => field).sort()]
    }),
  )
}

test('F8: docs/reference/events.md has every event with each field of its payload', () => {
  const events = declared()
  expect(Object.keys(events)).toContain('node_restored')
  expect(Object.keys(events)).toEqual(Object.keys(channels))
  expect(documented()).toEqual(events)
})
