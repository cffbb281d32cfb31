import { type Names, namesOf, type Place } from '../../stores/postgres/names.ts'

/** What all is called, quoted for SQL; the names of functions have the format in them, as those of the store. */
export interface FenceNames {
  readonly schema: string
  /** The table of marks. */
  readonly marks: string
  /** Raises a mark or refuses. */
  readonly raise: string
  /** Refuses who does not hold the lease any more. */
  readonly guard: string
  /** Where leases are, if they are looked at. */
  readonly leases: Names | undefined
}

/** Throws `INVALID_ARGUMENT` for names that PostgreSQL would cut off or that need care in SQL. */
export function fenceNames({ schema, table = 'fence' }: Place, leases?: boolean | Place): FenceNames {
  const { schema: quoted, lease: marks, call } = namesOf({ schema, table })
  return {
    schema: quoted,
    marks,
    raise: call('raise'),
    guard: call('guard'),
    leases: leases ? namesOf(leases === true ? {} : leases) : undefined,
  }
}
