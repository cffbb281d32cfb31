import type { Peer } from '../peer.ts'
import { redlock5Over } from './redlock5.ts'

export const peer: Peer = redlock5Over('redlock')
