import { etcdHarness } from '../harnesses/etcd.ts'
import { differ } from './differ.ts'

differ(etcdHarness())
