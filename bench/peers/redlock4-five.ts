import type { Peer } from '../peer.ts'
import { redlock4Over } from './redlock4.ts'

export const peer: Peer = redlock4Over('redlock')
