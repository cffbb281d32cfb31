import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exitCode } from '../src/cli/failure.ts'
import { LeaseError, type LeaseErrorCode } from '../src/contract/errors.ts'
import { between, plain } from './members.ts'
import { table } from './proof/page.ts'

const SOURCE = 'src/contract/errors.ts'

/** docs/reference/errors.md, with a row for each code, from their doc comments, and the names of the fields. */
export function errorsPage(page: string): string {
  const source = readFileSync(join(import.meta.dirname, '..', SOURCE), 'utf8')
  const codes = Array.from(
    source.matchAll(/^ \* - `([A-Z_]+)`: (.*(?:\n \* {3}.*)*)/gm),
    ([, code = '', text = '']) => {
      const error = new LeaseError(code as LeaseErrorCode, '')
      return [`\`${code}\``, capital(plain(text)), error.retryable ? 'yes' : 'no', String(exitCode(error))]
    },
  )
  const [, body = ''] = /^export interface LeaseErrorOf<.*?\{\n(.*?)^\}/ms.exec(source) ?? []
  const members = body.matchAll(/^ {2}readonly (\w+): ([^\n]*)$/gm)
  const fields = Array.from(members, ([, name = '', type = '']) => {
    const [, of = ''] = /^Code extends (.*?) \?/.exec(type) ?? []
    const codes = of.replaceAll("'", '`').replaceAll(' | ', ', ')
    return `\`${name}\`${codes ? ` (${codes})` : ''}`
  })
  const tables = [
    table(['code', 'what happened, and what to do', '`retryable`', 'exit code'], codes),
    `Fields, of every error unless codes are named: ${fields.join(', ')}.`,
  ]
  return between(page, 'errors', tables.join('\n\n'))
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
