import { etcdHarness } from '../harnesses/etcd.ts'
import { differ } from './differ.ts'

differ(etcdHarness(), {
  // Leases are used again, so one that is not renewed may end a tenth of its ttl early, and nobody knows when leases end.
  // The documented limits of etcd say so.
  lasts: ms => 0.9 * ms,
  knowsNoEnds: true,
  // A keepalive lasts for the ttl that the lease has. R1 and R6 ask for no less than the ttl of the claim.
  keepsTtl: true,
  // After two thirds, the position of a waiter that does not ask is deleted. R8 asks for one third, its `retryAfter`.
  keepsFor: 0.6,
  // A claim that joins counts the waiters in the server, and knows from its watch who was passed. The number is for people.
  countsPassed: true,
  // R15 asks for that only after `kept`.
  keepsWatched: 'perhaps',
  // Only a waiter learns when a grace period began. The documented limits say so.
  triesWait: true,
  // A grant compares that no key was created since the store looked, and not that none was deleted. So it is above a break
  // that came between (R10), and finds later that it fits (R9).
  grantsLate: true,
  // While the watch of a process reports others, a claim joins the queue first, and then takes a name that has become free.
  // So it has waited, as an inspection of that time may show (R11).
  joinsFirst: true,
})
