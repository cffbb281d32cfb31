import { natsHarness } from '../harnesses/nats.ts'
import { differ } from './differ.ts'
import { asOneClient, UNAGED } from './one-client.ts'

differ(asOneClient(natsHarness()), UNAGED)
