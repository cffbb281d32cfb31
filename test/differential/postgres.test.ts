import { postgresHarnesses } from '../harnesses/postgres.ts'
import { differ, POSTGRES } from './differ.ts'

for (const harness of postgresHarnesses()) if (!harness.repeats) differ(harness, POSTGRES)
