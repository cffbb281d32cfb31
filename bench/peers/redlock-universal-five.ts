import type { Peer } from '../peer.ts'
import { redlockUniversalOver } from './redlock-universal.ts'

export const peer: Peer = redlockUniversalOver('redlock')
