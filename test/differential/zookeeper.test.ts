import { zookeeperHarness } from '../harnesses/zookeeper.ts'
import { differ } from './differ.ts'

differ(zookeeperHarness(), {
  // A renewal counts from the last request that its session has sent: a late one lasts for half of its ttl at least. The
  // documented limits say so, and that other processes do not know what remains of a lease.
  lasts: ms => 0.5 * ms,
  knowsNoEnds: true,
  // A waiter has its position for as long as its session lasts. R15 asks for that only after `kept`.
  keepsWatched: 'perhaps',
  // A claim creates its node, which others see (R8), and is granted by the next transaction.
  isSplit: true,
})
