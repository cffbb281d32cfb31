import type { Busy, Claim, ClaimKey, Grant, Store, Wake } from '../../src/contract/store.ts'
import { KeptPositions } from '../../src/stores/wire/kept-positions.ts'
import type { Variant } from './simulate.ts'

interface Wrong {
  readonly variant: Variant
  /** The violation that the checks report. */
  readonly caught: RegExp
  /** Do processes and resources detect it, without the server's replies? */
  readonly isSeenByClients: boolean
}

/** Keeps a waiter until it is granted the name, also if the core does not accept that. */
class UntilGranted extends KeptPositions {
  readonly #wakes = new Map<string, Wake>()

  override add(claim: Claim, wake: Wake): void {
    this.#wakes.set(claim.id, wake)
    super.add(claim, wake)
  }

  override granted(claim: Claim): void {
    super.granted(claim)
    const wake = this.#wakes.get(claim.id)
    if (wake) this.remove(claim, wake)
  }
}

/** Variants with one mistake each. */
export const variants: Readonly<Record<string, Wrong>> = {
  'a client that counts the ttl from the reply': {
    variant: { mistake: { ttl: elapsed => elapsed } },
    caught: /believes to hold it|is told that it holds/,
    isSeenByClients: true,
  },
  'a client that takes a renewal without an answer for a good one': {
    variant: { mistake: { failedRenewal: (_claim, last) => last } },
    caught: /believes to hold it|is told that it holds/,
    isSeenByClients: true,
  },
  'clocks that stand still while their process does': {
    variant: { sleepingClocks: true },
    caught: /is told that it holds/,
    isSeenByClients: true,
  },
  'a server that carries out what comes late': {
    variant: { flaw: { takesLate: true } },
    caught: /ms after its caller was told that it is not/,
    isSeenByClients: true,
  },
  'a server that forgets what was withdrawn before it arrived': {
    variant: {
      flaw: server(store => ({
        // Released under another id, so that no tombstone bars the right one.
        release: async ({ name, id }, signal) =>
          (await holds(store, name, id, signal)) ? store.release({ name, id }, signal) : 'gone',
      })),
    },
    caught: /granted after it was withdrawn/,
    isSeenByClients: false,
  },
  'a server that releases by name': {
    variant: {
      flaw: server(store => ({
        async release({ name, id }, signal) {
          const answer = await store.release({ name, id }, signal)
          if (answer === 'gone') await store.break(name, { by: 'anybody' }, signal)
          return answer
        },
      })),
    },
    caught: /believes to hold it|is told that it holds|granted while another holds/,
    isSeenByClients: true,
  },
  'a server that gives each holder the same token': {
    variant: {
      flaw: server(store => ({
        async acquire(claim, signal) {
          const answer = await store.acquire(claim, signal)
          return answer.held ? { ...answer, token: 7n } : answer
        },
      })),
    },
    caught: /token 7 was (given after 7|handed out twice)|an older holder came after/,
    isSeenByClients: true,
  },
  'a server that starts its tokens anew now and then': {
    variant: {
      flaw: server(store => {
        let count = 0
        const tokens = new Map<bigint, bigint>()
        const lowered = (grant: Grant): Grant => {
          if (!tokens.has(grant.token)) tokens.set(grant.token, BigInt(1 + (count++ % 5)))
          return { ...grant, token: tokens.get(grant.token) ?? 0n }
        }
        return {
          async acquire(claim, signal) {
            const answer = await store.acquire(claim, signal)
            return answer.held ? lowered(answer) : answer
          },
          async renew(claim, signal) {
            const grant = await store.renew(claim, signal)
            return grant && lowered(grant)
          },
        }
      }),
    },
    caught: /was given after|was handed out after|a write of its holder was refused/,
    isSeenByClients: true,
  },
  'a server that brings a lost lease back at its renewal': {
    variant: {
      flaw: server(store => {
        const last = new Map<string, Grant>()
        return {
          async acquire(claim, signal) {
            const answer = await store.acquire(claim, signal)
            if (answer.held) last.set(claim.id, answer)
            return answer
          },
          renew: async (claim, signal) => (await store.renew(claim, signal)) ?? last.get(claim.id),
        }
      }),
    },
    caught: /granted to who holds no more/,
    isSeenByClients: false,
  },
  'waiters that are kept only until they are granted the name': {
    variant: { mistake: { places: UntilGranted } },
    caught: /nobody who waits for it has asked/,
    isSeenByClients: true,
  },
  'a server that lets claims run out early': {
    variant: {
      flaw: server(store => ({
        acquire: (claim, signal) => store.acquire({ ...claim, ttl: claim.ttl * 0.7 }, signal).then(whole(claim)),
        renew: async (claim, signal) => {
          const grant = await store.renew({ ...claim, ttl: claim.ttl * 0.7 }, signal)
          return grant && { ...grant, ttl: claim.ttl }
        },
      })),
    },
    caught: /believes to hold it|is told that it holds|granted while another holds/,
    isSeenByClients: true,
  },
  'a server that lets whoever asks first overtake': {
    variant: {
      flaw: server(store => ({
        acquire: (claim, signal) => store.acquire({ ...claim, queue: false }, signal),
      })),
    },
    caught: /granted before \d+ who wait/,
    isSeenByClients: false,
  },
  'a server whose break does not raise the token': {
    variant: {
      flaw: server(store => ({
        async break(name, parameters, signal) {
          const token = await store.break(name, parameters, signal)
          return token && token - 1_000_000n
        },
      })),
    },
    caught: /was given by a break after/,
    isSeenByClients: false,
  },
  'a server that keeps the leases of those who released them': {
    variant: { flaw: server(() => ({ release: async () => 'released' })) },
    caught: /is held or waited for|a release was answered|granted while|was refused/,
    isSeenByClients: false,
  },
  'a line whose head is never woken': {
    variant: {
      flaw: server(store => ({
        watch: async () => {},
        acquire: async (claim, signal) => slower(await store.acquire(claim, signal)),
      })),
    },
    caught: /it was free for|although \d+ waited|wait for ever/,
    isSeenByClients: true,
  },
}

function whole(claim: Claim): (answer: Grant | Busy) => Grant | Busy {
  return answer => (answer.held ? { ...answer, ttl: claim.ttl } : answer)
}

function slower(answer: Grant | Busy): Grant | Busy {
  return answer.held ? answer : { ...answer, retryAfter: 1e6 }
}

async function holds(store: Store, name: string, id: string, signal: AbortSignal): Promise<boolean> {
  return (await store.renew({ name, id, owner: '', ttl: 1, note: '', queue: false }, signal)) !== undefined
}

type Verbs = Partial<Pick<Store, 'acquire' | 'renew' | 'break' | 'watch'>> & {
  release?(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'>
}

/** A server with some changed verbs. */
function server(change: (store: Store) => Verbs): { wrap(store: Store): Store } {
  return {
    wrap(store) {
      const changed = change(store)
      return new Proxy(store, {
        get(target, key) {
          const verb = changed[key as keyof Verbs] ?? target[key as keyof Store]
          return typeof verb === 'function' ? verb.bind(target as never) : verb
        },
      })
    },
  }
}
