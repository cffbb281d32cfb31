/** Ends the name of the lease by which `--skip-if-ran-since` remembers a successful run. Nothing renews that lease. */
export const RAN = ':ran'

/** Its note. */
export const RAN_NOTE = 'a run ended well: none before this ends'
