import { holdfast } from './holdfast.ts'

interface Shown {
  readonly id: string
  readonly level: string
  readonly what: string
}

interface Diagnosis {
  readonly code: number | null
  /** The worst level of each finding, by its id. */
  readonly levels: Readonly<Record<string, string>>
}

/** What `holdfast doctor` says about a store. */
export async function doctor(store: string): Promise<Diagnosis> {
  const { code, found } = await diagnosed(store)
  // The worst finding comes first, and the last entry of a key counts.
  return { code, levels: Object.fromEntries(found.reverse().map(({ id, level }) => [id, level])) }
}

/** What one finding says about a store, after its level. */
export async function finding(store: string, wanted: string): Promise<string | undefined> {
  const { found } = await diagnosed(store)
  return found.filter(({ id }) => id === wanted).map(({ level, what }) => `${level}: ${what}`)[0]
}

async function diagnosed(store: string): Promise<{ code: number | null; found: Shown[] }> {
  const { code, out } = await holdfast(['doctor', '--json'], { env: { HOLDFAST_STORE: store } })
  return { code, found: JSON.parse(out) as Shown[] }
}
