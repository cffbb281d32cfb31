import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Peer, Place } from './peer.ts'

/** What a process of its own is started for. */
export interface Job {
  readonly peer: string
  /** A module of `scenarios/`, and the function in it. */
  readonly scenario: string
  readonly task: string
  readonly place: Place
  readonly settings: Settings
}

export type Settings = Readonly<Record<string, number>>

/** What a task measured, by name. `undefined`: unknown. */
export type Values = Record<string, number | number[] | undefined>

export interface Stage {
  readonly peer: Peer
  readonly place: Place
  readonly settings: Settings
  /** Tells the driver how far this is, and resolves when that says go. */
  reached(step: string): Promise<void>
  /** Errors that nobody caught, so far. */
  readonly uncaught: () => number
}

export type Task = (stage: Stage) => Promise<Values>

export type Message = { readonly step: string } | { readonly values: Values } | { readonly failure: string }

/** The adapter in `peers/`. */
export async function loadPeer(name: string): Promise<Peer> {
  const path = join(import.meta.dirname, 'peers', `${name}.ts`)
  if (!existsSync(path)) throw new Error(`there is no peer ${name}`)
  return ((await import(path)) as { peer: Peer }).peer
}

async function run({ peer: name, scenario, task, place, settings }: Job): Promise<Values> {
  let uncaught = 0
  // A library that leaves a rejection to nobody would end the process of a user. Here that is counted.
  for (const event of ['unhandledRejection', 'uncaughtException']) process.on(event, () => (uncaught += 1))
  const peer = await loadPeer(name)
  if (task === 'serve') return { port: await peer.serve?.() }
  const module = (await import(`./scenarios/${scenario}.ts`)) as Record<string, Task>
  const work = module[task]
  if (!work) throw new Error(`scenarios/${scenario}.ts has no ${task}`)
  const reached = async (step: string): Promise<void> => {
    const go = once(process, 'message')
    send({ step })
    await go
  }
  return work({ peer, place, settings, reached, uncaught: () => uncaught })
}

function send(message: Message): void {
  process.send?.(message)
}

if (process.argv[1] === import.meta.filename) {
  // The driver is gone: so is the reason to be.
  process.on('disconnect', () => process.exit(1))
  const job = JSON.parse(process.argv[2] ?? '') as Job
  run(job)
    .then(
      values => send({ values }),
      (error: Error) => send({ failure: error.stack ?? String(error) }),
    )
    .finally(() => {
      // Whatever the library still has to do, such as to poll, is of no interest.
      if (job.task !== 'serve') setTimeout(() => process.exit(0), 20)
    })
}
