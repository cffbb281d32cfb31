/** What a call asks for: `want` of these slots of a name. */
export interface Demand {
  readonly name: string
  /** Ascending. */
  readonly slots: readonly number[]
  readonly want: number
}
