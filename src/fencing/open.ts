import type { KeptMarks } from './marks.ts'
import type { RowFence } from './postgres/sql.ts'

/** The high-water marks at one URL. Disposing of them closes the connection that was opened for them. */
export interface OpenMarks extends KeptMarks, AsyncDisposable {}

export interface FenceSqlOptions {
  /** Adds a function that checks the row of the lease, for leases in the same database. @default false */
  readonly leases?: boolean | undefined
  /** Makes a trigger for the rows of this table, instead of the table of marks. */
  readonly row?: RowFence | undefined
}

/** Makes `marks` call `close` when they are disposed of. */
export function openMarksOf(marks: KeptMarks, close: () => unknown): OpenMarks {
  return Object.assign(marks, {
    async [Symbol.asyncDispose](): Promise<void> {
      await close()
    },
  })
}

/** Creates the marks of a fence over this client, which is then ended. */
export async function installAt(fence: { install(): Promise<void> }, client: object): Promise<void> {
  try {
    await fence.install()
  } finally {
    end(client)
  }
}

/** Ends a client. Does not wait: if the server does not respond, that would take for ever. */
export function end(client: object): void {
  ;(client as { end?(ended: () => void): unknown }).end?.(() => {})
}
