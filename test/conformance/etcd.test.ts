import { etcdHarness } from '../harnesses/etcd.ts'
import { conform } from './conform.ts'

conform(etcdHarness())
