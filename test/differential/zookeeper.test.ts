import { zookeeperHarness } from '../harnesses/zookeeper.ts'
import { differ } from './differ.ts'

differ(zookeeperHarness(), { knowsNoEnds: true })
