import { subscribe } from '../../index.ts'
import type { Output } from '../output.ts'
import { describeHolder } from './holder.ts'

/** Reports the grant and the release of the lease, with `--json`. */
export function reportLease(names: readonly string[], output: Output): void {
  // Where names cannot be shared, the lease of a permit of `x` may be `x#2`. Any other lease is that of the run marker.
  const isReported = (name: string): boolean => names.some(each => name === each || name.startsWith(`${each}#`))
  subscribe('lease_acquired', ({ lease, waited }) => {
    const { name, token, owner } = lease
    if (!isReported(name)) return
    const slot = 'slot' in lease ? { slot: lease.slot } : {}
    const data = { name, token, owner, ...slot, waited: Math.round(waited) }
    output.event('acquired', `${name} is held with token ${token}`, data)
  })
  subscribe('lease_released', ({ lease: { name, token } }) => {
    if (isReported(name)) output.event('released', `${name} is released`, { name, token })
  })
}

/** Reports once that this process waits for a shared name. Each busy event names only one of several holders. */
export function reportSharedWait(shared: string, output: Output): void {
  let isReported = false
  subscribe('lease_busy', ({ name, holder, ahead }) => {
    if (isReported || name !== shared) return
    isReported = true
    const text = `${name} is ${describeHolder(holder, true)}, waiting${aheadText(ahead)}; ${seeAll(name)}`
    output.info('waiting', text, { name, holder, ahead })
  })
}

/** A hint for users: the command that shows all holders of a shared name. */
export function seeAll(name: string): string {
  return `holdfast inspect ${name} shows all`
}

function aheadText(ahead: number | undefined): string {
  return ahead ? `; ${ahead} ahead` : ''
}

/** Reports the holder for which this process waits, once per holder. */
export function reportHolders(output: Output): void {
  let last: string | undefined
  subscribe('lease_busy', ({ name, holder, ahead }) => {
    const key = holder && `${name} ${holder.owner} ${holder.token}`
    if (!holder || key === last) return
    last = key
    const text = `${name} is ${describeHolder(holder)}, waiting${aheadText(ahead)}`
    output.info('waiting', text, { name, holder, ahead })
  })
}
