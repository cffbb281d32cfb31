import { expect, test } from 'vitest'
import { judge } from '../checker.ts'
import { report } from '../report.ts'
import { table } from '../verdict.ts'
import { contest } from './contest.ts'

const passing = await contest(1)
const violating = await contest(1, { fence: false })

test('the page of a violation tells its story, how to see it again, and shows it first', () => {
  const verdict = judge(violating)
  const page = report(violating, verdict, 'holdfast prove --lab redis --seed 1')
  for (const line of verdict.story) expect(page).toContain(line)
  expect(page).toContain('<code>holdfast prove --lab redis --seed 1</code>')
  expect(page).toContain('class="violation"')
  expect(page).toMatch(/data-span="[\d.]+ [\d.]+">the violation</)
})

test('the page of a run that passed shows who held what, what went wrong and what was refused', () => {
  const page = report(passing, judge(passing))
  expect(page).not.toContain('How it came about')
  for (const mark of ['hold', 'wait', 'fault', 'fault own', 'lost', 'died', 'refused'])
    expect(page.split(`class="${mark}"`).length, mark).toBeGreaterThan(2)
})

test('the page needs nothing from elsewhere', () => {
  expect(report(passing, judge(passing))).not.toMatch(/https?:|src=|href=|@import|url\(/)
})

test('names stand in the page as they are', () => {
  const name = `<img onerror="alert('a')">&`
  const history = passing.map(event => {
    if (event.kind === 'run') return { ...event, names: [name] }
    return 'name' in event ? { ...event, name } : event
  })
  const page = report(history, judge(history))
  expect(page).toContain('&#60;img onerror=&#34;alert(&#39;a&#39;)&#34;&#62;&#38;')
  expect(page).not.toContain('<img')
})

test('the verdict for people has each promise with what was seen, and the story of a violation', () => {
  expect(table(judge(passing))).toMatchInlineSnapshot(`
    "simulated: passed
    seed 1, 4 clients, 2 names, ttl 300 ms, 20 s

    passed        Safety: mutual exclusion as the resource sees it
                  779 writes were accepted, 57 refused
    passed        Tokens: unique and rising
                  196 grants, 9 of them takeovers: the last holder had not released the name
    passed        Told in time: before another holds
                  losses reported to their holders: 7
                  takeovers from a live holder that knew in time: 7, 10 ms or more before the next grant, 15 ms in the median
                  one overlap of two holders, excused by pause: the fence refused what the older wrote (1)
    passed        Liveness A: free of deadlock
                  names of holders that died were had again within 139 ms (2)
                  a name that was asked for had no holder for 615 ms at most
    passed        Liveness B: fault tolerance
                  pause 18, kill 13, delay 5"
  `)
  const { story } = judge(violating)
  expect(story.length).toBeGreaterThan(3)
  expect(table(judge(violating))).toContain(`\n\nHow it came about\n  ${story.join('\n  ')}`)
})
