import { subscribe } from '../../index.ts'
import type { Output } from '../output.ts'
import { describeHolder } from './holder.ts'

/** With `--json`: reports the grant and the release of the lease. */
export function reportLease(name: string, output: Output): void {
  subscribe('lease_acquired', ({ lease: { name: acquired, token, owner }, waited }) => {
    if (acquired !== name) return // the lease of the run marker
    const data = { name, token, owner, waited: Math.round(waited) }
    output.event('acquired', `${name} is held with token ${token}`, data)
  })
  subscribe('lease_released', ({ lease: { name: released, token } }) => {
    if (released === name) output.event('released', `${name} is released`, { name, token })
  })
}

/** While this process waits: reports the holder, once per holder. */
export function reportHolders(name: string, output: Output): void {
  let last: string | undefined
  subscribe('lease_busy', ({ holder, ahead }) => {
    const key = holder && `${holder.owner} ${holder.token}`
    if (!holder || key === last) return
    last = key
    const queue = ahead ? `; ${ahead} ahead` : ''
    output.info('waiting', `${name} is ${describeHolder(holder)}, waiting${queue}`, { name, holder, ahead })
  })
}
