import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { leaseAnswer } from '../examples/integrations/lease-answer.ts'
import { LeaseError, type LeaseErrorCode } from '../src/index.ts'
import { ROOT } from './script-node.ts'

/** A code, its status, and ", `Retry-After`" if it has one. */
const rows = [...page('integrations/web-frameworks').matchAll(/^\| (`[A-Z_`, ]+`) \| (\d+)(, `Retry-After`)? \|/gm)]
const codes = rows.flatMap(([, cell = '', status, retryAfter]) =>
  codesIn(cell).map(code => [code, Number(status), retryAfter !== undefined] as const),
)

test('the table of the statuses has every code once', () => {
  const all = page('reference/errors').match(/^\| `(?!HOLDFAST_)[A-Z_]+` \|/gm) ?? []
  expect(codes.map(([code]) => code).sort()).toEqual(codesIn(all.join()).sort())
})

test.each(codes)('the sample mapping answers %s with %i, as its table says', (code, status, hasRetryAfter) => {
  const error = new LeaseError(code, 'no', { waited: 0, token: 1n, highest: 2n })
  const answer = leaseAnswer(new Error('a driver', { cause: error }))
  if (status === 500) expect(answer, 'left to the service').toBeUndefined()
  else expect(answer).toMatchObject({ status, body: JSON.stringify({ status, code }) })
  expect(answer?.headers['retry-after'] !== undefined, 'Retry-After').toBe(hasRetryAfter)
})

function page(name: string): string {
  return readFileSync(join(ROOT, `docs/${name}.md`), 'utf8')
}

function codesIn(text: string): LeaseErrorCode[] {
  return Array.from(text.matchAll(/`([A-Z_]+)`/g), ([, code]) => code as LeaseErrorCode)
}
