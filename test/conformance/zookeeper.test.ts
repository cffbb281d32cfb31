import { zookeeperHarness } from '../harnesses/zookeeper.ts'
import { conform } from './conform.ts'

conform(zookeeperHarness())
