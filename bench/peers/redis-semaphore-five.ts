import type { Peer } from '../peer.ts'
import { redisSemaphoreOver } from './redis-semaphore.ts'

export const peer: Peer = redisSemaphoreOver('redlock')
