import { conform } from '../../../../test/harnesses/conform.ts'
import { zookeeperHarness } from '../../../../test/harnesses/zookeeper.ts'

conform(zookeeperHarness())
