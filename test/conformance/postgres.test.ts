import { postgresHarnesses } from '../harnesses/postgres.ts'
import { conform } from './conform.ts'

conform(...postgresHarnesses())
