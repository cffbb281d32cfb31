import { onTestFinished } from 'vitest'
import type { Access } from '../../src/dashboard/dashboard.ts'
import type { Store } from '../../src/store.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { type Served, serve } from './serve.ts'

/** Serves the dashboard of a store until the test has ended. */
export async function served(store: Store = memory(), access: Access = 'operate'): Promise<Served> {
  const shown = await serve(store, access)
  onTestFinished(() => shown[Symbol.asyncDispose]())
  return shown
}
