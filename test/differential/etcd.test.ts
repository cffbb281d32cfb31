import { etcdHarness } from '../harnesses/etcd.ts'
import { differ } from './differ.ts'

// A lease may end a tenth of its ttl early.
differ(etcdHarness(), { lasts: ms => 0.9 * ms, triesWait: true, grantsLate: true, knowsNoEnds: true })
