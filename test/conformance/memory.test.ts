import { memoryHarness } from '../harnesses/memory.ts'
import { conform } from './conform.ts'

conform(memoryHarness())
