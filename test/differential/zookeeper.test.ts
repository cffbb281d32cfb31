import { zookeeperHarness } from '../harnesses/zookeeper.ts'
import { differ } from './differ.ts'

// A renewal counts from the last request that its session has sent.
differ(zookeeperHarness(), { lasts: ms => 0.5 * ms, knowsNoEnds: true, isSplit: true })
