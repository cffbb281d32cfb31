// What the command line shows a person: in a terminal of tmux, of leases in a real Redis, and of the demo.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { newFolder } from '../lab/servers/folder.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { startTmux, type Tmux } from '../lab/servers/tmux.ts'
import { until } from '../lab/servers/until.ts'
import { connect, type Lease } from '../src/index.ts'

const ROOT = join(import.meta.dirname, '..')

/** A shell that waits for its next command. */
const PROMPT = /\n\$\s*$/

const PODS = ['g5n8q', 'p7r2d']

/** What a terminal shows. */
export interface Screen {
  /** The command, and what is special about it. */
  readonly name: string
  readonly columns: number
  /** As `tmux capture-pane -p -e` has it, with codes of colours. */
  readonly text: string
}

/** `holdfast demo` to its end, half a minute later. */
export async function demoScreen(): Promise<Screen> {
  await using tmux = await terminal(80, 45)
  return await answer(tmux, 'demo', 80, 'npx holdfast demo')
}

/** The screens of commands about a store, each in terminals of these widths. */
export async function* storeScreens(widths: readonly number[]): AsyncGenerator<Screen> {
  await using redis = await startRedis()
  const env = { HOLDFAST_STORE: redis.url }
  yield* await answers('doctor', 'holdfast doctor', widths, env) // before top, which would show its name
  await using top = await terminal(80, 24, env)
  await top.press('holdfast top', 'Enter')
  yield* sized(top, 'top, empty store', widths, /No name is held[\s\S]*q quit/)
  yield* await answers('ls, empty store', 'holdfast ls', widths, env)

  await using town = await openTown(redis.url, top)
  yield* await answers('ls', 'holdfast ls', widths, env)
  yield* await answers('run, refused', 'holdfast run deploy -- ./deploy.sh', widths, env)

  await town.grow()
  yield* sized(top, 'top', widths, /invoices-17 may be stuck[\s\S]* invoices-9 +bill/)
  await top.press('Enter')
  yield* sized(top, 'top, one name', widths, /Queue/)
  await top.press('Escape')
  await top.shows(/NAME +HOLDER/)
  await redis.stop()
  yield* sized(top, 'top, store down', widths, /cannot be read/)
  yield* await answers('ls, store down', 'holdfast ls', widths, env)
}

/** Leases of every kind. One has been held for far longer than others of its kind, which `top` saw end. */
async function openTown(url: string, top: Tmux): Promise<AsyncDisposable & { grow(): Promise<void> }> {
  const [holders, waiters] = await Promise.all([connect(url, { ttl: 60_000 }), connect(url, { ttl: 60_000 })])
  const hold = (name: string, owner: string, note = ''): Promise<Lease> => holders.acquire(name, { owner, note })
  const invoices = (): Promise<Lease[]> =>
    Promise.all(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map(number => hold(`invoices-${number}`, `billing-7d4b9c6f5-${PODS[number % 2]}`)),
    )
  const leases = [
    await hold('deploy', 'ci-4412', 'release 2.31'),
    await hold('invoices-17', 'billing-7d4b9c6f5-x2x9k', 'order 3,204'),
  ]
  for (const pod of ['8kq2v', 'c4rtn', 'zp7wd'])
    leases.push(await holders.semaphore('geocoder', { limit: 3 }).acquire({ owner: `maps-66f8d5c4b7-${pod}` }))
  await holders.once('nightly', { within: 43_200_000, owner: 'reports-5c9d8b7f4-q8z2p' }, async () => {})
  const waiting = [
    waiters.acquire('invoices-17', { owner: 'billing-7d4b9c6f5-lm4tx' }),
    waiters.acquire('invoices-17', { owner: 'billing-7d4b9c6f5-w9c6h' }),
    waiters.semaphore('geocoder', { limit: 3 }).acquire({ owner: 'maps-66f8d5c4b7-n5j8s' }),
  ]
  for (const each of waiting) each.catch(() => {}) // they wait to the end
  const earlier = await invoices()
  await top.shows('invoices-9')
  await Promise.all(earlier.map(lease => lease.release()))
  const later = sleep(9_000) // what is held for 10 s or less is never taken for stuck
  return {
    grow: async () => {
      await later
      leases.push(...(await invoices()))
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(leases.map(lease => lease.release()))
      await Promise.all([holders.close(), waiters.close()])
    },
  }
}

/** A shell in which `holdfast` and `npx holdfast` run the command of this checkout. */
async function terminal(columns: number, rows: number, env: Readonly<Record<string, string>> = {}): Promise<Tmux> {
  const folder = newFolder('bin')
  const run = `exec '${ROOT}/script/holdfast' "$@"\n`
  writeFileSync(join(folder, 'holdfast'), `#!/bin/sh\n${run}`, { mode: 0o755 })
  writeFileSync(join(folder, 'npx'), `#!/bin/sh\nshift\n${run}`, { mode: 0o755 })
  const tmux = await startTmux({ columns, rows, cwd: folder, env })
  await tmux.press("PATH=.:$PATH PS1='$ '; clear", 'Enter')
  await tmux.shows(/^\$\s*$/)
  return tmux
}

/** The same command in terminals of all widths. */
function answers(
  name: string,
  command: string,
  widths: readonly number[],
  env: Readonly<Record<string, string>>,
): Promise<Screen[]> {
  return Promise.all(
    widths.map(async columns => {
      await using tmux = await terminal(columns, 45, env)
      return await answer(tmux, name, columns, command)
    }),
  )
}

/** What a command prints until it ends, below its command line. */
async function answer(tmux: Tmux, name: string, columns: number, command: string): Promise<Screen> {
  await tmux.press(command, 'Enter')
  await tmux.shows(PROMPT, 120_000)
  const text = await tmux.call('capture-pane', '-p', '-e', '-J') // wrapped lines are one
  return { name, columns, text: text.slice(0, text.lastIndexOf('\n', text.trimEnd().lastIndexOf('$'))) }
}

/** A screen that adapts to the width of its terminal. */
async function* sized(tmux: Tmux, name: string, widths: readonly number[], shown: RegExp): AsyncGenerator<Screen> {
  for (const columns of widths) {
    await tmux.resize(columns, 24)
    await tmux.shows(new RegExp(`^.{${columns}}\\n[\\s\\S]*${shown.source}`))
    let text = ''
    const isWhole = async (): Promise<boolean> => {
      const before = text
      text = await tmux.call('capture-pane', '-p', '-e', '-N') // with the spaces of a row that is chosen
      return text.replaceAll(/\d+/g, '') === before.replaceAll(/\d+/g, '')
    }
    await until('the frame is drawn', isWhole, { every: 100 })
    yield { name, columns, text }
  }
}
