import { checkKeys, invalid, show } from '../../contract/check.ts'
import { checkMark, checkResource, type FenceOptions, showingOf } from '../fence.ts'
import type { Holder, Mark } from '../mark.ts'
import { parseText, writeText } from './text.ts'

const TOKEN = 'Fencing-Token'
const RESOURCE = 'Fencing-Resource'
const LINEAGE = 'Fencing-Lineage'

const fenceKeys = new Set(['resource', 'lineage'])

/** The headers of a request, as Node or as the Fetch standard has them. */
export type RequestHeaders =
  | { readonly [name: string]: string | readonly string[] | undefined }
  | { get(name: string): string | null }

/** What a request shows: a `Holder` of the resource that it is about, for any other fence too. */
export interface RequestFence extends Holder, Mark {
  /** The resource. */
  readonly name: string
}

/**
 * What a client sends with each request that writes: `Fencing-Token`, in decimal, `Fencing-Resource`, a string or, for
 * names beyond ASCII, a display string of RFC 9651, and `Fencing-Lineage` unless it is 0. For `fetch` and the like.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function fenceHeaders(lease: Holder, options: FenceOptions = {}): Record<string, string> {
  checkKeys(options, fenceKeys, 'fenceHeaders')
  const { resource, mark } = showingOf(lease, options)
  return {
    [TOKEN]: String(mark.token),
    [RESOURCE]: writeText(resource),
    ...(mark.lineage > 0 && { [LINEAGE]: String(mark.lineage) }),
  }
}

/**
 * What the headers show; `undefined` if they show nothing. `resource` is what the server knows the request to be about:
 * then a header may be missing but not name another, since tokens of two names cannot be compared.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function readFence(headers: RequestHeaders, resource?: string): RequestFence | undefined {
  if (resource !== undefined) checkResource(resource)
  const [token, named, lineage] = [TOKEN, RESOURCE, LINEAGE].map(name => headerOf(headers, name))
  if (token === undefined && named === undefined && lineage === undefined) return undefined
  const shown = named === undefined ? undefined : parseText(named)
  if (named !== undefined && shown === undefined)
    throw invalid(`${RESOURCE} must be one string of RFC 9651, such as "invoices", not ${show(named)}`)
  const name = resource ?? shown
  if (name === undefined) throw invalid(`${RESOURCE} is missing: say what is written to, such as "invoices"`)
  if (shown !== undefined && shown !== name)
    throw invalid(`${RESOURCE} names ${show(shown)} and this request is about ${show(name)}: show the lease of that`)
  checkResource(name)
  const fence = { name, token: BigInt(decimal(TOKEN, token)), lineage: Number(decimal(LINEAGE, lineage ?? '0')) }
  checkMark(fence)
  return fence
}

/** Of a header that is there twice both values, with a comma, as Node and Fetch join them: no number has one. */
function headerOf(headers: RequestHeaders, name: string): string | undefined {
  if (hasGet(headers)) return headers.get(name) ?? undefined
  const value = headers[name.toLowerCase()] ?? headers[name]
  return typeof value === 'object' ? value.join(', ') : value
}

function hasGet(headers: RequestHeaders): headers is Extract<RequestHeaders, { get(name: string): string | null }> {
  return typeof headers.get === 'function'
}

function decimal(header: string, value: string | undefined): string {
  if (value !== undefined && /^(0|[1-9]\d{0,18})$/.test(value) && BigInt(value) < 2n ** 63n) return value
  throw invalid(
    `${header} must be one decimal number below 2^63, ${value === undefined ? 'and is missing' : `not ${show(value)}`}`,
  )
}
