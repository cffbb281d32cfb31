import type { Peer } from '../peer.ts'
import { holdfastOverRedlock } from './holdfast-five.ts'

export const peer: Peer = holdfastOverRedlock('Holdfast (baseline)', process.env.BENCH_BASELINE)
