import { conform } from '../../../../test/harnesses/conform.ts'
import { natsHarness } from '../../../../test/harnesses/nats.ts'

conform(natsHarness())
