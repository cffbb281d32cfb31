import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { between, membersIn, plain } from './members.ts'

const SOURCE = 'src/contract/lease-events.ts'

/** docs/reference/events.md, with a section for each event, from its doc comments. */
export function eventsPage(page: string): string {
  const source = readFileSync(join(import.meta.dirname, '..', SOURCE), 'utf8')
  const events = source.matchAll(/^ {2}\/\*\*((?:(?!\*\/).)*)\*\/\n {2}(\w+): \{\n(.*?)^ {2}\}/gms)
  const sections = Array.from(events, ([, comment = '', name = '', body = '']) => {
    const fields = membersIn(body, 4, `${SOURCE}: ${name}`).map(
      ({ name, type, text }) => `- \`${name}\` (${type}): ${text}`,
    )
    return `## \`${name}\`\n\n${plain(comment)}\n\n${fields.join('\n')}`
  })
  return between(page, 'events', sections.join('\n\n'))
}
