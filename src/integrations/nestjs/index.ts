export { LeaseHealth, type LeaseHealthResult } from './health.ts'
export { LeaseCron, type LeaseCronOptions } from './lease-cron.ts'
export { InjectLocks, LeaseModule, type LeaseModuleAsyncOptions, type LeaseModuleOptions } from './module.ts'
export { UseLease } from './use-lease.ts'
