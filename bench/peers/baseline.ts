import type { Peer } from '../peer.ts'
import { holdfastOverRedis } from './holdfast.ts'

/** Another build, such as the one before a change. */
export const peer: Peer = holdfastOverRedis('Holdfast (baseline)', process.env.BENCH_BASELINE)
