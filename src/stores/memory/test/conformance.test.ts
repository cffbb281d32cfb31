import { conform } from '../../../../test/harnesses/conform.ts'
import { memoryHarness } from '../../../../test/harnesses/memory.ts'

conform(memoryHarness())
