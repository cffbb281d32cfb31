import { type Attributes, type Context, context, type Span, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { type LeaseError, messageOf } from '../contract/errors.ts'
import { subscribe } from '../contract/events.ts'
import { heldBy } from '../contract/identity.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseEvents } from '../contract/lease-events.ts'
import { outcomeOf } from './metrics.ts'

interface Acquiring {
  readonly span: Span
  /** The caller's context. Later events may be emitted in another context. */
  readonly caller: Context
}

/**
 * A span for each acquire, each held lease and each release. The parent of the first two is the span that is active at
 * the acquire call. The parent of a release is the span that is active at the release call.
 */
export class Spans {
  readonly #tracer: Tracer
  readonly #acquires = new Map<string, Acquiring>()
  /** The spans, by `heldBy`: a reference to a handle would hide that the program has dropped it. */
  readonly #holds = new Map<object, Span>()
  readonly #releases = new Map<object, Span>()
  readonly #stops: readonly (() => void)[]

  constructor(tracer: Tracer) {
    this.#tracer = tracer
    this.#stops = [
      subscribe('acquire_began', event => this.#onAcquire(event)),
      subscribe('not_acquired', event => this.#onNotAcquired(event)),
      subscribe('lease_acquired', event => this.#onAcquired(event)),
      subscribe('heartbeat_failed', ({ lease, error }) =>
        this.#holds.get(heldBy(lease))?.addEvent('heartbeat failed', { 'error.type': error.code }),
      ),
      subscribe('lease_lost', ({ lease, error }) => this.#end(lease, error)),
      subscribe('release_began', ({ lease }) =>
        this.#releases.set(heldBy(lease), this.#start('lease release', of(lease), context.active())),
      ),
      subscribe('lease_released', ({ lease }) => this.#end(lease)),
      subscribe('release_failed', ({ lease, error }) => lease && this.#end(lease, error)),
    ]
  }

  /** Stops, and ends open spans, because no later event will. */
  stop(): void {
    for (const stop of this.#stops) stop()
    for (const { span } of this.#acquires.values()) span.end()
    for (const spans of [this.#holds, this.#releases]) {
      for (const span of spans.values()) span.end()
      spans.clear()
    }
    this.#acquires.clear()
  }

  #start(name: string, attributes: Attributes, parent: Context): Span {
    return this.#tracer.startSpan(name, { attributes }, parent)
  }

  #onAcquire(event: LeaseEvents['acquire_began']): void {
    const caller = context.active()
    this.#acquires.set(event.id, { span: this.#start('lease acquire', of(event), caller), caller })
  }

  #onNotAcquired({ id, error }: LeaseEvents['not_acquired']): void {
    const acquiring = this.#acquires.get(id)
    this.#acquires.delete(id)
    if (!acquiring) return
    const outcome = outcomeOf(error)
    acquiring.span.setAttribute('holdfast.lease.outcome', outcome)
    end(acquiring.span, outcome === outcome.toLowerCase() ? undefined : error)
  }

  #onAcquired({ id, lease, requests }: LeaseEvents['lease_acquired']): void {
    const acquiring = this.#acquires.get(id)
    if (!acquiring) return // the call began before this subscribed
    this.#acquires.delete(id)
    const { span, caller } = acquiring
    const granted = { 'holdfast.lease.token': lease.token.toString() }
    end(span.setAttributes({ ...granted, 'holdfast.lease.outcome': outcomeOf(), 'holdfast.lease.requests': requests }))
    this.#holds.set(heldBy(lease), this.#start('lease hold', { ...of(lease), ...granted }, caller))
  }

  #end(lease: Lease, error?: LeaseError): void {
    for (const spans of [this.#releases, this.#holds]) {
      const span = spans.get(heldBy(lease))
      if (span) end(span, error)
      spans.delete(heldBy(lease))
    }
  }
}

function of({ name, owner, ttl }: Pick<Lease, 'name' | 'owner' | 'ttl'>): Attributes {
  return { 'holdfast.lease.name': name, 'holdfast.lease.owner': owner, 'holdfast.lease.ttl': ttl }
}

function end(span: Span, error?: unknown): void {
  if (error !== undefined) {
    span.setAttribute('error.type', outcomeOf(error))
    span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) })
  }
  span.end()
}
