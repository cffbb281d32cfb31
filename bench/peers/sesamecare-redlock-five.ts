import type { Peer } from '../peer.ts'
import { sesamecareRedlockOver } from './sesamecare-redlock.ts'

export const peer: Peer = sesamecareRedlockOver('redlock')
