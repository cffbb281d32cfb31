import { memoryHarness } from '../harnesses/memory.ts'
import { differ } from './differ.ts'

differ(memoryHarness())
