import { memoryRegisterHarness, sqlRegisterHarness } from '../harnesses/cas.ts'
import { differ } from './differ.ts'
import { asOneClient, UNAGED } from './one-client.ts'

differ(sqlRegisterHarness())
differ(asOneClient(memoryRegisterHarness()), UNAGED)
