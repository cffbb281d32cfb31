import { type Names, namesOf, type Tables } from '../../stores/postgres/names.ts'

/** The names of the fence's objects, quoted for SQL. Function names contain the format number, as in the store. */
export interface FenceNames {
  readonly schema: string
  /** The table of marks. */
  readonly marks: string
  /** The function that raises a mark or refuses. */
  readonly raise: string
  /** The function that refuses a holder whose lease is over. */
  readonly guard: string
  /** The names of the leases, if the fence checks them. */
  readonly leases: Names | undefined
}

/** Throws `INVALID_ARGUMENT` for names that PostgreSQL would truncate or that are unsafe in SQL. */
export function fenceNames({ schema, table = 'fence' }: Tables, leases?: boolean | Tables): FenceNames {
  const { schema: quoted, lease: marks, call } = namesOf({ schema, table })
  return {
    schema: quoted,
    marks,
    raise: call('raise'),
    guard: call('guard'),
    leases: leases ? namesOf(leases === true ? {} : leases) : undefined,
  }
}
