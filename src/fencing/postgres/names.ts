import { type Names, namesOf, type Tables } from '../../stores/postgres/names.ts'

/** The format of the table of marks and of its functions, whose names contain it. */
export const MARKS_FORMAT = 2

/** The names of the fence's objects, quoted for SQL. */
export interface FenceNames {
  readonly schema: string
  /** The table of marks. */
  readonly marks: string
  /** The function that raises the marks of a holder or refuses. */
  readonly raise: string
  /** The function that raises one mark or refuses. */
  readonly mark: string
  /** The function that refuses. */
  readonly refuse: string
  /** The function that refuses a holder whose lease is over. */
  readonly guard: string
  /** The names of the leases, if the fence checks them. */
  readonly leases: Names | undefined
}

/** Throws `INVALID_ARGUMENT` for names that PostgreSQL would truncate or that are unsafe in SQL. */
export function fenceNames({ schema, table = 'fence' }: Tables, leases?: boolean | Tables): FenceNames {
  const { schema: quoted, lease: marks } = namesOf({ schema, table })
  const call = (verb: string): string => `${marks.slice(0, -1)}_${verb}_${MARKS_FORMAT}"`
  return {
    schema: quoted,
    marks,
    raise: call('raise'),
    mark: call('mark'),
    refuse: call('refuse'),
    guard: call('guard'),
    leases: leases ? namesOf(leases === true ? {} : leases) : undefined,
  }
}
