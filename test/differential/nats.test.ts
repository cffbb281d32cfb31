import { natsHarness } from '../harnesses/nats.ts'
import { differ } from './differ.ts'

differ(natsHarness())
