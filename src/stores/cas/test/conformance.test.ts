import { memoryRegisterHarness, sqlRegisterHarness } from '../../../../test/harnesses/cas.ts'
import { conform } from '../../../../test/harnesses/conform.ts'

conform(memoryRegisterHarness())
conform(sqlRegisterHarness())
