import { postgresHarnesses } from '../harnesses/postgres.ts'
import { differ } from './differ.ts'

for (const harness of postgresHarnesses()) if (!harness.repeats) differ(harness, { keepsWatched: true, isNarrow: true })
