import { memoryRegisterHarness, sqlRegisterHarness } from '../harnesses/cas.ts'
import { differ } from './differ.ts'
import { asOneClient } from './one-client.ts'

differ(sqlRegisterHarness())
differ(asOneClient(memoryRegisterHarness()))
