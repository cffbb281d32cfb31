import { checkKeys, invalid, show } from '../../contract/check.ts'
import { checkMark, checkResource, type FenceOptions, presentedBy } from '../fence.ts'
import type { Holder, Shown } from '../mark.ts'
import { parseToken, writeToken } from '../shown.ts'
import { parseText, writeText } from './text.ts'

const TOKEN = 'Fencing-Token'
const RESOURCE = 'Fencing-Resource'
const EPOCH = 'Fencing-Epoch'

const fenceKeys = new Set(['resource', 'epoch'])

/** The headers of a request, as in Node or in the Fetch standard. */
export type RequestHeaders =
  | { readonly [name: string]: string | readonly string[] | undefined }
  | { get(name: string): string | null }

/** What a request presents. It is a `Holder` of its resource, which every other fence takes too. */
export interface RequestFence extends Holder, Shown {
  /** The resource. */
  readonly name: string
  readonly token: bigint
}

/**
 * The headers to send with each request that writes, for `fetch` and other clients:
 *
 * - `Fencing-Token`, in decimal; of a permit with its limit and slots: `33/5:0+2`
 * - `Fencing-Resource`, a string, or a display string of RFC 9651 if it is not ASCII
 * - `Fencing-Epoch`, unless it is 0
 * @throws LeaseError INVALID_ARGUMENT, or as `lease.assertHeld()`
 */
export function fenceHeaders(lease: Holder, options: FenceOptions = {}): Record<string, string> {
  checkKeys(options, fenceKeys, 'fenceHeaders')
  const { resource, mark } = presentedBy(lease, options)
  return {
    [TOKEN]: writeToken(mark),
    [RESOURCE]: writeText(resource),
    ...(mark.epoch > 0 && { [EPOCH]: String(mark.epoch) }),
  }
}

/**
 * Returns what the headers present. `undefined`: all of them are missing. If the server passes `resource`, the resource
 * header may be missing. It must not name another resource, because tokens of two names cannot be compared.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function readFence(headers: RequestHeaders, resource?: string): RequestFence | undefined {
  if (resource !== undefined) checkResource(resource)
  const [token, named, epoch] = [TOKEN, RESOURCE, EPOCH].map(name => headerOf(headers, name))
  if (token === undefined && named === undefined && epoch === undefined) return undefined
  const shown = named === undefined ? undefined : parseText(named)
  if (named !== undefined && shown === undefined)
    throw invalid(`${RESOURCE} must be one string of RFC 9651, such as "invoices", not ${show(named)}`)
  const name = resource ?? shown
  if (name === undefined) throw invalid(`${RESOURCE} is missing: send the name of the resource, such as "invoices"`)
  if (shown !== undefined && shown !== name)
    throw invalid(`${RESOURCE} is ${show(shown)}, but this request is for ${show(name)}: send the token of its lease`)
  checkResource(name)
  const fence = { name, ...tokenOf(token), epoch: epochOf(epoch ?? '0') }
  checkMark(fence)
  return fence
}

/** The value of a header. A comma joins the values of a repeated header, as in Node and Fetch, so it is no number. */
function headerOf(headers: RequestHeaders, name: string): string | undefined {
  if (hasGet(headers)) return headers.get(name) ?? undefined
  const value = headers[name.toLowerCase()] ?? headers[name]
  return typeof value === 'object' ? value.join(', ') : value
}

function hasGet(headers: RequestHeaders): headers is Extract<RequestHeaders, { get(name: string): string | null }> {
  return typeof headers.get === 'function'
}

function tokenOf(value: string | undefined): Omit<Shown, 'epoch'> {
  const shown = value === undefined ? undefined : parseToken(value)
  if (shown) return shown
  const expected = 'one decimal number below 2^63, of a permit with its limit and slots, such as 33/5:0+2'
  throw invalid(
    value === undefined ? `${TOKEN} is missing: send ${expected}` : `${TOKEN} must be ${expected}, not ${show(value)}`,
  )
}

function epochOf(value: string): number {
  if (/^(0|[1-9]\d{0,9})$/.test(value)) return Number(value)
  throw invalid(`${EPOCH} must be one decimal number below 2^31, not ${show(value)}`)
}
