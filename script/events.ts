import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { between, membersIn, plain } from './members.ts'

const SOURCE = 'src/contract/lease-events.ts'
/** The text of a field with up to so many words says no more than its name and type. */
const PLAIN = 8

/** docs/reference/events.md, with a section for each event and what its fields do not say by their names. */
export function eventsPage(page: string): string {
  const source = readFileSync(join(import.meta.dirname, '..', SOURCE), 'utf8')
  const events = source.matchAll(/^ {2}\/\*\*((?:(?!\*\/).)*)\*\/\n {2}(\w+): \{\n(.*?)^ {2}\}/gms)
  const sections = Array.from(events, ([, comment = '', name = '', body = '']) => {
    const fields = membersIn(body, 4, `${SOURCE}: ${name}`)
    const names = `Fields: ${fields.map(field => `\`${field.name}\``).join(', ')}.`
    const told = fields
      .filter(({ text }) => text.split(' ').length > PLAIN)
      .map(({ name, text }) => `- \`${name}\`: ${text}`)
    return [`## \`${name}\``, plain(comment), names, ...(told.length > 0 ? [told.join('\n')] : [])].join('\n\n')
  })
  return between(page, 'events', sections.join('\n\n'))
}
