/** The lease by which `--skip-if-ran-since` remembers that a run ended well: nobody renews it. */
export const RAN = ':ran'

/** Its note. */
export const RAN_NOTE = 'a run ended well: none before this ends'
