import { existsSync, readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { stateOf } from '../../../lab/servers/process.ts'
import { PROMPT, startTmux, type Tmux, type TmuxOptions } from '../../../lab/servers/tmux.ts'
import { createLocks, type Locks } from '../../index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { descendants, folder, HOLDFAST, holdfast, holding, kill, start, store, until } from './holdfast.ts'

let locks: Locks | undefined

afterEach(async () => {
  await locks?.close({ grace: 0 })
  locks = undefined
})

/** Locks on the store of the test. */
function ours(owner: string): Locks {
  locks ??= createLocks(sqlite(`${folder}/leases.db`), { owner, ttl: 60_000 })
  return locks
}

/** A terminal in which `holdfast top` runs. */
async function shown(options: TmuxOptions = {}): Promise<Tmux> {
  const tmux = await startTmux({ columns: 100, ...options, env: { HOLDFAST_STORE: store(), ...options.env } })
  await tmux.press(`${HOLDFAST.map(word => `'${word}'`).join(' ')} top`, 'Enter')
  await tmux.shows('q quit')
  return tmux
}

async function waiting(name: string, owner: string): Promise<void> {
  await start(['run', name, '--wait', 'forever', '--owner', owner, '--', 'true']).reports('waiting')
}

test('the longest wait is first on the screen, and Enter shows its queue; Esc leads back, q ends it', async () => {
  for (const name of ['a', 'b', 'z']) await ours('alice').acquire(name, { note: `note of ${name}` })
  await waiting('z', 'bob')
  await waiting('z', 'carol')
  await using tmux = await shown()
  const list = await tmux.shows('Longest wait: z')
  expect(list).toMatch(/^holdfast top {2}sqlite:.*leases\.db +every /)
  expect(list).toContain('3 held, 2 waiting, 0 taken over')
  expect(list).toMatch(/\n> {2}z +alice .*note of z/)
  expect(list.indexOf(' a '), 'others follow by name').toBeLessThan(list.indexOf(' b '))
  await tmux.press('Enter')
  const one = await tmux.shows('Queue')
  expect(one).toMatch(/Held by +alice/)
  expect(one).toMatch(/\n {2}# {2}WAITER +WAITED\n {2}1 {2}bob +≥ [\d.]+ s\n {2}2 {2}carol +≥ /)
  await tmux.press('Escape')
  await tmux.shows('NAME ')
  await tmux.press('q')
  const after = await tmux.shows(PROMPT)
  expect(after, 'the screen is as it was before').not.toContain('Longest wait')
})

test('one stuck holder among 200 names is first, and one key shows why', async () => {
  const all = ours('worker')
  await all.acquire('job-117')
  await using tmux = await shown()
  // Leases that it has seen to end show what is usual.
  const ended = await Promise.all(Array.from({ length: 6 }, (_, i) => all.acquire(`job-${i}`)))
  await tmux.shows('7 held')
  await Promise.all(ended.map(lease => lease.release()))
  await tmux.shows(/\b1 held/)
  await Promise.all(Array.from({ length: 200 }, (_, i) => all.tryAcquire(`job-${i}`)))
  await tmux.shows('job-117 may be stuck')
  await tmux.press('Enter')
  expect(await tmux.shows('Queue')).toMatch(/! Held for \d+ s, others of job-# for [\d.]+ s or less/)
})

test('a lease is broken only after its name was typed', async () => {
  const lease = await ours('alice').acquire('nightly')
  await using tmux = await shown()
  await tmux.shows('nightly')
  await tmux.press('b')
  await tmux.shows('To break nightly, type its name')
  await tmux.press('night', 'Enter')
  await tmux.shows('Not broken: night was typed, not nightly')
  lease.assertHeld()
  await tmux.press('p', 'b')
  await tmux.shows('Paused: who holds it now is not known')
  await tmux.press('p', 'b')
  await tmux.shows('To break nightly')
  await lease.release()
  const next = await ours('alice').acquire('nightly', { owner: 'carol' })
  await tmux.press('nightly', 'Enter')
  await tmux.shows('Not broken: nightly has another holder now, or none')
  next.assertHeld()
  await tmux.shows('carol')
  await tmux.press('b', 'nightly', 'Enter')
  await tmux.shows('nightly was taken from its holder. Its next token is above')
  expect((await ours('alice').inspect('nightly')).holders[0]).toBeUndefined()
})

test('the marker of a run is removed by the name that ran, and the lease on that name stays', async () => {
  await ours('alice').once('nightly', { within: 60_000 }, async () => {})
  const lease = await ours('alice').acquire('nightly', { owner: 'bob' })
  await using tmux = await shown()
  expect(await tmux.shows(/nightly +alice +ran$/m)).toMatch(/nightly +bob +/)
  await tmux.press('/', 'alice', 'Enter', 'b')
  await tmux.shows('To remove the marker of nightly, type its name')
  await tmux.press('nightly', 'Enter')
  await tmux.shows('The marker of nightly is removed: the next run is not skipped')
  expect((await ours('alice').inspect('nightly')).holders).toMatchObject([{ token: lease.token }])
})

test('a name longer than the screen is wide can be read, pasted and broken; what is pasted presses no keys', async () => {
  const name = `${'long-'.repeat(50)}end`
  await ours('alice').acquire(name)
  await using tmux = await shown({ columns: 60 })
  const paste = async (text: string): Promise<void> => {
    await tmux.call('set-buffer', text)
    await tmux.call('paste-buffer', '-p')
  }
  await tmux.shows('alice')
  await paste('q\n')
  await tmux.press('b')
  expect((await tmux.shows('To break')).replaceAll('\n', '')).toContain(`To break ${name}, type its name.`)
  await paste(`${name}\n`)
  expect(await tmux.shows('long-end_')).toContain('Name: …')
  await tmux.press('Enter')
  await tmux.shows('was taken from its holder. Its next token')
})

test('a filter finds names, owners and notes, and is typed and left by keys', async () => {
  await ours('alice').acquire('export')
  await ours('alice').acquire('import', { note: 'of prices' })
  await using tmux = await shown()
  await tmux.shows('export')
  await tmux.press('/', 'PRICES')
  await tmux.shows('/PRICES_')
  await expect.poll(() => tmux.lines().then(lines => lines.join('\n'))).not.toContain('export')
  await tmux.press('Enter')
  await tmux.shows(/q quit +\/PRICES/)
  await tmux.press('Escape')
  await tmux.shows('export')
})

test('a filter chooses the first name that it finds, also after a key has chosen another', async () => {
  for (const name of ['a', 'b', 'z1', 'z2', 'z3']) await ours('alice').acquire(name)
  await using tmux = await shown()
  await tmux.shows('z3')
  await tmux.press('Down', '/', 'z', 'Enter')
  await tmux.shows(/\n> {2}z1 /)
  await tmux.press('Enter')
  await tmux.shows(/\nz1\n+Held by/)
})

test('the smallest terminals show the answer, the first name, that it is paused, and how to leave', async () => {
  for (const name of ['备份-数据库-每日', 'zzz']) await ours('alice').acquire(name)
  await using tmux = await shown({ columns: 20, rows: 5 })
  expect(await tmux.shows('Nobody')).toMatch(
    /^Nobody waits, and n…\n {3}NAME\n> {2}zzz\n {3}备份-数据库-每日\nEnter open {2}q quit$/m,
  )
  await tmux.press('p')
  await tmux.shows('Paused. Nobody')
  await tmux.resize(80, 24)
  await tmux.shows(/paused\nNobody waits, and no holder seems stuck\n/)
})

test('names of other scripts keep the columns in line, and what is not printed is shown and can be typed', async () => {
  const names = ['レポート', '🔒-lock', 'تقرير', 'דוח', '한국어', 'क्षि', 'x\u200dy']
  for (const name of names) await ours('alice').acquire(name)
  await using tmux = await shown({ columns: 80, rows: 24 })
  const list = await tmux.shows('レポート')
  expect(list).toMatch(/^ {3}NAME {8}HOLDER /m)
  expect(list).toMatch(/^> {2}🔒-lock {5}alice /m)
  for (const row of [
    /^ {3}דוח {9}alice /m,
    /^ {3}تقرير {7}alice /m,
    /^ {3}한국어 {6}alice /m,
    /^ {3}レポート {4}alice /m,
  ])
    expect(list).toMatch(row)
  // The chosen row is written as a whole, so a wrong width would move what follows.
  await tmux.press('End')
  await tmux.shows(/^> {2}レポート {4}alice /m)
  await tmux.press('/', 'x', 'Enter', 'b')
  await tmux.shows('To break x\\u{200d}y, type its name')
  await tmux.call('send-keys', '-l', 'x\\u{200d}y')
  await tmux.press('Enter')
  await tmux.shows('y was taken from its holder. Its next token is above')
})

test('p keeps what is shown, and shows the present again', async () => {
  const lease = await ours('alice').acquire('nightly')
  await using tmux = await shown()
  await tmux.shows('1 held')
  await tmux.press('p')
  await tmux.shows('paused')
  await lease.release()
  await ours('alice').acquire('other')
  await new Promise(resolve => setTimeout(resolve, 1_500)) // a look that is not shown
  expect((await tmux.lines()).join('\n')).toMatch(/nightly +alice/)
  await tmux.press('p')
  await tmux.shows('other')
})

test('Ctrl-Z gives the terminal back, fg shows the screen again, and SIGTERM restores the terminal', async () => {
  await ours('alice').acquire('nightly')
  await using tmux = await shown()
  await tmux.shows('nightly')
  await tmux.press('C-z')
  expect(await tmux.shows('Stopped')).not.toContain('nightly')
  await tmux.press('fg', 'Enter')
  await tmux.shows('nightly')
  const shell = Number(await tmux.call('list-panes', '-F', '#{pane_pid}'))
  const [command] = descendants(shell)
  if (command === undefined) expect.fail(`nothing runs in the shell ${shell}`)
  kill(command, 'SIGTERM')
  await tmux.shows(PROMPT)
  await tmux.press('echo it is typed', 'Enter')
  await tmux.shows(/\nit is typed/)
})

test('it ends when its terminal is gone, also without a SIGHUP', async () => {
  const tmux = await startTmux({ env: { HOLDFAST_STORE: store() } })
  await tmux.press("trap '' HUP", 'Enter') // the shell stays, and the kernel tells nobody else
  const command = HOLDFAST.map(word => `'${word}'`).join(' ')
  await tmux.press(`(echo $$ >'${folder}/shell'; exec ${command} top)`, 'Enter')
  await tmux.shows('q quit')
  const [pid = 0] = descendants(Number(readFileSync(`${folder}/shell`, 'utf8')))
  await tmux[Symbol.asyncDispose]()
  await until(() => !existsSync(`/proc/${pid}`) || stateOf(pid) === 'Z', 'the end of top')
})

test('the screen adapts to its size, and has no colours with NO_COLOR', async () => {
  await ours('alice').acquire('nightly', { note: 'invoices' })
  await using tmux = await shown({ env: { NO_COLOR: '1' } })
  await tmux.shows(/NAME .*HOLDER .*RENEW BY/)
  expect(await tmux.call('capture-pane', '-p', '-e'), 'no code of a colour').not.toMatch(/[[;]3[0-7]m/)
  await tmux.resize(40, 10)
  const narrow = await tmux.shows(/NAME +HOLDER +HELD +RENEW BY\n/)
  expect(narrow).toMatch(/\n> {2}nightly [\s\S]*\nEnter open .* q quit/)
})

test('without a terminal it prints what it sees once, as text or as JSON', async () => {
  await holding('nightly', '--owner', 'alice', '--note', 'invoices')
  const text = await holdfast(['top'])
  expect(text).toMatchObject({ code: 0, err: '' })
  expect(text.out).toMatch(/^holdfast top .*\n.*\n1 held, 0 waiting.*\n\n {3}NAME .*\n {3}nightly +alice .*invoices\n$/)
  const { out } = await holdfast(['top', 'night', '--json'])
  expect(JSON.parse(out)).toMatchObject({
    isPartial: false,
    names: [{ name: 'nightly', held: { owner: 'alice', note: 'invoices' }, troubles: [], waiters: [] }],
  })
  const failed = await holdfast(['top'], { env: { HOLDFAST_STORE: 'redis://127.0.0.1:1' } })
  expect(failed).toMatchObject({ code: 69, out: '' })
})
