import { subscribe } from '../../index.ts'
import type { Output } from '../output.ts'
import { heldBy } from './holder.ts'

/** Reports to programs when the lease is granted and when it is released. */
export function reportLease(name: string, output: Output): void {
  subscribe('lease_acquired', ({ lease: { name: acquired, token, owner }, waited }) => {
    if (acquired !== name) return // the lease that remembers a run
    const data = { name, token, owner, waited: Math.round(waited) }
    output.report('acquired', `${name} is held with token ${token}`, data)
  })
  subscribe('lease_released', ({ lease: { name: released, token } }) => {
    if (released === name) output.report('released', `${name} is released`, { name, token })
  })
}

/** One line whenever the holder that is waited for is another. */
export function tellHolders(name: string, output: Output): void {
  let last: string | undefined
  subscribe('lease_busy', ({ holder, ahead }) => {
    const key = holder && `${holder.owner} ${holder.token}`
    if (!holder || key === last) return
    last = key
    const line = ahead ? `; ${ahead} ahead` : ''
    output.tell('waiting', `${name} is ${heldBy(holder)}, waiting${line}`, { name, holder, ahead })
  })
}
