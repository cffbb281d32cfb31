import { conform } from '../../../../test/harnesses/conform.ts'
import { etcdHarness } from '../../../../test/harnesses/etcd.ts'

conform(etcdHarness())
