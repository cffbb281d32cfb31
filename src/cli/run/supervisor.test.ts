import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder, HOLDFAST } from '../test/holdfast.ts'
import { now, type Request, type Start, type Timestamp } from './supervisor.ts'

function inSeconds(seconds: number): Timestamp {
  const { monotonic, wall } = now()
  return { monotonic: monotonic + seconds * 1_000, wall: wall + seconds * 1_000 }
}

/** Sends all requests before the supervisor can read one. Resolves to its last report and whether the command ran. */
async function supervised(start: Partial<Start>, ...later: Request[]): Promise<{ last: unknown; ran: boolean }> {
  const ran = join(folder, 'ran')
  const usual = { env: process.env, onLost: 'kill', grace: 100, reserve: 100, deadline: inSeconds(-1) } as const
  const supervisor = fork(HOLDFAST.at(-1) as string, ['supervise', 'job'])
  let last: unknown
  supervisor.on('message', report => {
    last = report
  })
  const requests: Request[] = [{ start: { command: ['touch', ran], ...usual, ...start } }, ...later]
  for (const request of requests) supervisor.send(request)
  await once(supervisor, 'disconnect')
  return { last, ran: existsSync(ran) }
}

const SUCCESS = { ended: { code: 0, signal: null } }

test('a command whose deadline has passed is not started', async () => {
  expect(await supervised({})).toEqual({ last: { refused: true }, ran: false })
  expect(await supervised({ onLost: 'term' })).toEqual({ last: { refused: true }, ran: false })
})

test('a command that would be killed at once, because only the reserve is left, is not started', async () => {
  const late = { deadline: inSeconds(60), reserve: 60_000 }
  expect(await supervised(late)).toEqual({ last: { refused: true }, ran: false })
  expect(await supervised({ ...late, onLost: 'ignore' })).toEqual({ last: SUCCESS, ran: true })
})

test('a command whose lease was lost meanwhile is not started', async () => {
  const deadline = inSeconds(60)
  expect(await supervised({ deadline }, { end: 'lost' })).toEqual({ last: { refused: true }, ran: false })
})

test('the command is started if a later deadline was sent meanwhile, or if a loss is ignored', async () => {
  expect(await supervised({}, { deadline: inSeconds(60) })).toEqual({ last: SUCCESS, ran: true })
  expect(await supervised({ onLost: 'ignore' }, { end: 'lost' })).toEqual({ last: SUCCESS, ran: true })
})
