import type { Peer } from '../peer.ts'
import { holdfastOverRedis } from './holdfast.ts'

/** Another build, such as the one before a change. */
export const peer: Peer = holdfastOverRedis('Holdfast (beside)', process.env.BENCH_BESIDE)
