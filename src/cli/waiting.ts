import { subscribe } from '../index.ts'
import { heldBy } from './describe.ts'
import type { Output } from './output.ts'

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
