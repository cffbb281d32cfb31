import { advisoryHarness } from '../harnesses/postgres.ts'
import { conform } from './conform.ts'

conform(advisoryHarness())
