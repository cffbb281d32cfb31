/** The rules of the protocol. A variant omits one. The real protocol has all of them. */
export interface Rules {
  /** Unless a majority answered the same token, the greatest is written back to it (COMMIT) before it is handed out. */
  writeBack: boolean
  /** Only nodes whose votes were counted may acknowledge a COMMIT. */
  countedOnly: boolean
  /** A COMMIT is carried out only on exactly the lease that the vote was answered with. */
  match: boolean
  /** A renewal sets a lease again only where the counter has not passed its token. */
  restoreBelow: boolean
  /** A renewal raises the lease's attempt to the one that was granted, which YIELD compares. */
  renewAttempt: boolean
  /** A lease that is set again is of the attempt that was granted. */
  restoreAttempt: boolean
  /** A release raises the counter above the token. */
  releaseRaises: boolean
  /** A withdrawn vote frees only the lease of its own attempt or an earlier one. */
  yieldAttempt: boolean
  /** A node that has lost its memory does not vote. */
  quarantine: boolean
}

/** The real protocol. */
export const OURS: Rules = {
  writeBack: true,
  countedOnly: true,
  match: true,
  restoreBelow: true,
  renewAttempt: true,
  restoreAttempt: true,
  releaseRaises: true,
  yieldAttempt: true,
  quarantine: true,
}
