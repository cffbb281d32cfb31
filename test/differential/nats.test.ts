import { natsHarness } from '../harnesses/nats.ts'
import { differ } from './differ.ts'
import { asOneClient } from './one-client.ts'

differ(asOneClient(natsHarness()))
