import { expect, test } from 'vitest'
import { startTmux, type Tmux } from '../../../lab/servers/tmux.ts'
import { createLocks } from '../../index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { folder, HOLDFAST, holdfast, store } from './holdfast.ts'

const NAME = `search-index/${'eu-central-1/'.repeat(12)}rebuild`
const OWNER = 'worker-7f9c4d8b6b-x2x1b'
const NOTE = `reading page ${'118 of 4012, '.repeat(10)}see runbook 12`

test.each([80, 120, 160, 180])(
  'in a terminal of %i columns no line of ls or top wraps; in a pipe nothing is cut',
  async columns => {
    await using locks = createLocks(sqlite(`${folder}/leases.db`), { owner: OWNER, ttl: 60_000 })
    await using _lease = await locks.acquire(NAME, { note: NOTE })
    for (let slot = 0; slot < 3; slot += 1)
      await locks.semaphore('geocoder', { limit: 3 }).acquire({ owner: `${OWNER}-${slot}` })
    await locks.once('nightly', { within: 60_000 }, async () => {})
    await using tmux = await startTmux({ columns, rows: 24, env: { HOLDFAST_STORE: store() } })
    const run = (command: string): Promise<void> =>
      tmux.press(`clear; ${HOLDFAST.map(word => `'${word}'`).join(' ')} ${command}`, 'Enter')

    await run('ls')
    await tmux.shows(/rebuild +held[\s\S]*[#$]\s*$/)
    const ls = await table(tmux)
    expect(ls.map(line => line.trimStart().slice(0, 7))).toEqual(
      ['NAME', 'geocode', 'slot 0', 'slot 1', 'slot 2', 'nightly', 'search'].map(text =>
        expect.stringMatching(`^${text}`),
      ),
    )
    await run('top')
    await tmux.shows(/search[\s\S]*q quit/)
    const top = await table(tmux)
    expect(top.map(line => line.slice(3, 9))).toEqual(['NAME  ', 'geocod', 'nightl', 'search'])
    for (const line of [...ls, ...top]) expect(line.length).toBeLessThanOrEqual(columns)
    expect(ls.at(-1)?.indexOf(' held')).toBeLessThanOrEqual(0.4 * columns + 1)
    for (const [title = ''] of [ls, top]) expect(title.includes('TOKEN')).toBe(columns >= 160)
    for (const command of ['ls', 'top']) {
      const { out } = await holdfast([command])
      for (const text of [NAME, OWNER, NOTE, 'TOKEN']) expect(out).toContain(text)
    }
  },
)

/** The lines from the titles to the next line that is empty, or to the prompt. */
async function table(tmux: Tmux): Promise<string[]> {
  const lines = await tmux.lines()
  const start = lines.findIndex(line => line.trimStart().startsWith('NAME'))
  const rest = lines.slice(start)
  return rest.slice(
    0,
    rest.findIndex(line => /^[#$]?$/.test(line)),
  )
}
