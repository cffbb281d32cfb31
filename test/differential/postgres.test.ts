import { postgresHarnesses } from '../harnesses/postgres.ts'
import { isFull } from '../tier.ts'
import { differ, POSTGRES } from './differ.ts'

for (const harness of postgresHarnesses()) if (isFull || !harness.repeats) differ(harness, POSTGRES)
