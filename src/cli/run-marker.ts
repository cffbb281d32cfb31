/** The suffix of the lease that marks a successful run of NAME for `--skip-if-ran-since`. Nobody renews that lease. */
export const MARKER_SUFFIX = ':ran'

/** The note of that lease. */
export const MARKER_NOTE = 'a run succeeded; --skip-if-ran-since skips runs until this lease ends'
