import { expect, test } from 'vitest'
import { judge } from '../judge/checker.ts'
import { contest } from '../judge/test/contest.ts'
import { page } from './page.ts'
import { table } from './table.ts'

const REPLAY = 'holdfast prove --lab redis --seed 1'

const passing = await contest(1)
const violating = await contest(1, { fence: false })

test('the page of a violation explains it, shows how to repeat it, and draws it', () => {
  const verdict = judge(violating)
  const text = page(violating, verdict, REPLAY)
  for (const line of verdict.explanation) expect(text).toContain(line)
  expect(text).toContain(`<code>${REPLAY}</code>`)
  expect(text).toContain('<path class="violation"')
  expect(text.split('<svg')).toHaveLength(3)
})

test('the page of a run that passed shows holders, waiters, faults and refused writes', () => {
  const text = page(passing, judge(passing), REPLAY)
  expect(text).not.toContain('Explanation')
  expect(text.split('<svg')).toHaveLength(2)
  for (const mark of ['hold', 'wait', 'fault', 'lost', 'died', 'refused', 'overlap'])
    expect(text.split(new RegExp(`<(?:rect|path) class="${mark}"`)).length, mark).toBeGreaterThan(1)
})

test('the page of a long run shows the time around the violation', () => {
  const verdict = judge(violating)
  const many = Array.from({ length: 5_000 }, (_, index) => {
    const at = 20_000 + index
    const request = { client: 1, name: 'orders', op: 100_000 + index }
    return [{ kind: 'asked', at, ...request } as const, { kind: 'failed', at, ...request, code: 'CLOSED' } as const]
  })
  const text = page([...violating, ...many.flat()], verdict, REPLAY)
  expect(text).toMatch(/From 0\.\d{3} s to 2\d\.\d{3} s of 24\.999 s/)
})

test('the page loads nothing', () => {
  expect(page(violating, judge(violating), REPLAY)).not.toMatch(/https?:|src=|href=|@import|url\(|<script/)
})

test('names are escaped in the page', () => {
  const name = `<img onerror="alert('a')">&`
  const history = passing.map(event => {
    if (event.kind === 'run') return { ...event, names: [name] }
    return 'name' in event ? { ...event, name } : event
  })
  const text = page(history, judge(history), REPLAY)
  expect(text).toContain('&#60;img onerror=&#34;alert(&#39;a&#39;)&#34;&#62;&#38;')
  expect(text).not.toContain('<img')
})

test('the verdict as text has each promise with what the run showed, and the explanation of a violation', () => {
  expect(table(judge(passing))).toMatchInlineSnapshot(`
    "simulated: passed
    seed 1, 4 clients, 2 names, ttl 300 ms, 20 s

    passed        Safety: mutual exclusion as the resource sees it
                  writes accepted: 779, refused: 57
    passed        Tokens: unique and increasing
                  grants: 196; takeovers, whose last holder had not released the name: 9
    passed        Answers: allowed by the rules of a name
                  answers of the store: 1,899
    passed        Notified in time: before the next grant
                  losses reported to their holders: 7
                  takeovers from a live holder that was notified in time: 7, 10 ms or more before the next grant, 15 ms in the median
                  one overlap of two holders, excused by pause: the fence refused a write of the older (1)
    passed        Waiting: woken by a release, and in order
                  no release with waiters in calm times
    passed        No deadlock: a free name is acquired
                  names of dead holders were acquired within 139 ms (2)
                  longest time without a holder while clients waited: 615 ms
    passed        Recovery: after faults of servers or network
                  pause 18, kill 13, delay 5"
  `)
  const { explanation } = judge(violating)
  expect(explanation.length).toBeGreaterThan(3)
  expect(table(judge(violating))).toContain(`\n\nExplanation\n  ${explanation.join('\n  ')}`)
})
