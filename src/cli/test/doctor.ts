import { holdfast } from './holdfast.ts'

interface Shown {
  readonly id: string
  readonly level: string
}

/** What `holdfast doctor` says about a store: its exit code, and the level of each finding by its id. */
export async function doctor(store: string): Promise<{ code: number | null; levels: Record<string, string> }> {
  const { code, out } = await holdfast(['doctor', '--json'], { env: { HOLDFAST_STORE: store } })
  const found = JSON.parse(out) as Shown[]
  return { code, levels: Object.fromEntries(found.map(({ id, level }) => [id, level])) }
}
