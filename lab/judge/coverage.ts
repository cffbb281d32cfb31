import { marginsOf } from './promises/notification.ts'
import type { Waiting } from './promises/waiting.ts'
import { nextGrants, type Trace } from './trace.ts'
import type { PromiseName } from './violation.ts'

/** What a run showed. */
export interface Counts {
  readonly grants: number
  /** Grants of a name, or of a slot, that its last holder had not released. */
  readonly takeovers: number
  /** Losses of which the holder was notified, whether or not another client acquired the name. */
  readonly losses: number
  /** Takeovers from a live holder, which must be notified before. */
  readonly followed: number
  /** Clients that died while they held a name or waited for it. */
  readonly deaths: number
  /** Releases in calm times while others waited. */
  readonly handovers: number
  readonly accepted: number
  readonly rejected: number
  /** Answers of the store. */
  readonly answers: number
  readonly faults: Readonly<Record<string, number>>
}

/** The least that a run must show to prove anything. */
export interface Least {
  readonly grants: number
  readonly takeovers: number
  readonly losses: number
  readonly followed: number
  /** Only where a release notifies a waiter, and not of shared names. */
  readonly handovers: number
  readonly accepted: number
  readonly answers: number
  /** Only for a resource with a fence. */
  readonly rejected: number
}

/** Enough for a short run. A minute of four clients shows several times as much. */
export const LEAST: Least = {
  grants: 50,
  takeovers: 3,
  losses: 3,
  followed: 2,
  handovers: 5,
  accepted: 50,
  answers: 100,
  rejected: 1,
}

const WORDS: Readonly<Record<keyof Least, readonly [one: string, several: string]>> = {
  grants: ['grant', 'grants'],
  takeovers: ['takeover', 'takeovers'],
  losses: ['reported loss', 'reported losses'],
  followed: ['takeover from a live holder', 'takeovers from a live holder'],
  handovers: ['release with waiters in calm times', 'releases with waiters in calm times'],
  accepted: ['accepted write', 'accepted writes'],
  answers: ['answer of the store', 'answers of the store'],
  rejected: ['refused write', 'refused writes'],
}

/** What proves that a promise was kept. */
const PROOF: Readonly<Record<PromiseName, readonly (keyof Least)[]>> = {
  safety: ['accepted', 'rejected'],
  tokens: ['grants', 'takeovers'],
  answers: ['answers'],
  notified: ['losses', 'followed'],
  waiting: ['handovers'],
  deadlock: ['grants', 'takeovers'],
  faults: ['grants', 'takeovers'],
}

export function countsOf(trace: Trace, { delays }: Waiting): Counts {
  const { grants, holdings, acquisitions, decisions, requests, faults, run } = trace
  const counts = {
    grants: 0,
    takeovers: 0,
    losses: 0,
    followed: marginsOf(trace).length,
    deaths: 0,
    handovers: delays.length,
    accepted: 0,
    rejected: 0,
    answers: requests.filter(({ answer }) => answer).length,
  }
  for (const { over, lost, died } of acquisitions.values()) {
    if (lost === over && Number.isFinite(lost)) counts.losses += 1
    if (died === over && Number.isFinite(died)) counts.deaths += 1
  }
  for (const granted of grants.values()) counts.grants += granted.length
  const takenOver = [...holdings.values()].flatMap(all => {
    const holders = all.map(({ acquisition }) => acquisition)
    const next = nextGrants(holders)
    return holders.filter(({ releasing }, index) => releasing > (next[index]?.granted ?? releasing))
  })
  counts.takeovers = new Set(takenOver).size
  for (const { kind } of [...decisions.values()].flat()) counts[kind] += 1
  const seen: Record<string, number> = Object.fromEntries(run.faults.map(what => [what, 0]))
  for (const { what } of faults) seen[what] = (seen[what] ?? 0) + 1
  return { ...counts, faults: seen }
}

/** What a run lacks to prove this promise. */
export function missing(promise: PromiseName, counts: Counts, least: Least, { run, store }: Trace): string[] {
  const isWoken = store?.waiting === 'pushed' && run.names.some(name => !run.shared?.[name])
  const applies = (what: keyof Least): boolean => (what === 'rejected' ? run.fence : what !== 'handovers' || isWoken)
  const lacks = PROOF[promise]
    .filter(what => counts[what] < least[what] && applies(what))
    .map(what => `${counts[what]} ${WORDS[what][counts[what] === 1 ? 0 : 1]}, at least ${least[what]} are needed`)
  if (promise !== 'faults') return lacks
  const faults = Object.entries(counts.faults)
  if (faults.length === 0) return [...lacks, 'there were no faults']
  return [...lacks, ...faults.filter(([, times]) => times === 0).map(([what]) => `the fault ${what} never occurred`)]
}
