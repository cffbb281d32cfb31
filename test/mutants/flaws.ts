/** A mistake that is planted in the reference store. */
export type Flaw =
  | 'two holders'
  | 'holder gets another token'
  | 'waiter gets another position'
  | 'keeps no position'
  | 'acquire waits for the name'
  | 'queues who does not queue'
  | 'copy of acquire shortens'
  | 'stale acquire takes the name'
  | 'stale renewal carried out'
  | 'stale note written'
  | 'release by name'
  | 'tombstone ignored'
  | 'no tombstone after a release'
  | 'tombstone of one second'
  | 'token is the wall clock'
  | 'token is the wall clock in seconds'
  | 'renewal gets another token'
  | 'grant overstates the ttl'
  | 'renewal overstates the ttl'
  | 'renewal revives'
  | 'renewal brings the old note back'
  | 'acquire brings the old note back'
  | 'note renews'
  | 'queue jumped'
  | 'wake lost'
  | 'wakes who watches no more'
  | 'break does not raise the token'
  | 'break of a free name'
  | 'break ignores the token'
  | 'break clears the queue'
  | 'inspect shows an expired holder'
  | 'name taken for a prefix'
  | 'names differ by letters only'
  | 'loss never reported'
  | 'loss reported for a held lease'
  | 'given up is sent'
  | 'close releases all leases'
  | 'owner taken for the id'
  | 'one tombstone a name'
  | 'tombstone ends with a lease'
  | 'copy granted again while under way'
  | 'conflict taken for gone'
  | 'end of a long name ignored'
  | 'unchanged note taken for gone'
  | 'counter lost in a restart'
  | 'stale break carried out'
  | 'watch armed late'
  | 'prefix taken for a pattern'
  | 'inspect ends after a page'
  | 'release grants the name to a waiter'
  | 'no grace period'
  | 'dead crowd blocks'
  | 'grace period ignores the round trip'
  | 'round trip has no limit'
  | 'busy answer late'
  | 'kept waiter is not woken'
  | 'kept waiter is forgotten after a grant'
  | 'lost position is not noticed'
  | 'slot given twice'
  | 'highest slot first'
  | 'one slot for all units'
  | 'own limit counts'
  | 'slots above the limit'
  | 'lock beside a slot'
  | 'limit of 16'
  | 'copy changes the limit'
  | 'copy of a waiter changes its units'
  | 'copy ignores the other ends'
  | 'tombstone only of a held name'
  | 'token of the slot'
  | 'slot lost with its holder'
  | 'release ends all leases'
  | 'note of all holders'
  | 'inspect shows one holder'
  | 'inspect shows no units'
  | 'holders in the order of their grants'
  | 'break ends one lease'
  | 'break ignores the slot'
  | 'break ends older leases'
  | 'grant not seen by the next'
  | 'position of many units outlasts'
  | 'readers overtake'
  | 'small claims overtake'
  | 'passed waiter counts on'
  | 'passed waiter never counts again'
  | 'no chain of wakes'
  | 'no wake of the next after a grant'
  | 'no wake after a withdrawal'
  | 'wake only of a free name'

/** By flaw: the case that must catch it (the start of its name), and the message of that case. */
export const flaws: Readonly<Record<Flaw, readonly [begin: string, says: RegExp]>> = {
  'two holders': ['R1: grants a name to exactly one of many concurrent claims', /100/],
  'holder gets another token': ['R1: a claim that asks again gets the same lease', /strictly equal/],
  'waiter gets another position': ['R1: a waiter that asks again keeps its position', /strictly equal/],
  'acquire waits for the name': ['R2: answers a claim that must wait at once', /not within/],
  'busy answer late': ['R2: answers a claim that must wait at once', /the busy answer took/],
  'queues who does not queue': ['R2: keeps nothing of a claim that does not queue', /deep-equal/],
  'slot given twice': ['R1: several claims hold a name under its limit', /deep-equal/],
  'highest slot first': ['R1: several claims hold a name under its limit', /deep-equal/],
  'one slot for all units': ['R1: a claim for several units gets', /deep-equal/],
  'own limit counts': ['R1: the smallest limit in use counts', /should not/],
  'slots above the limit': ['R1: a claim does not hold while a slot', /should not/],
  'lock beside a slot': ['R1: a claim of limit 1 holds alone', /should not/],
  'limit of 16': ['R1: accepts the largest limit', /should hold/],
  'grant not seen by the next': ['R1: concurrent claims through two clients never', /deep-equal/],
  'copy changes the limit': ['R1: a claim that asks again keeps its slots', /deep-equal/],
  'copy of a waiter changes its units': ['R1: a waiter that asks again keeps its limit', /deep-equal/],
  'copy of acquire shortens': ['R3: a stale copy of the acquire never shortens its lease', /ms remain/],
  'stale acquire takes the name': ['R3: a stale acquire ends no lease', /strictly equal/],
  'stale renewal carried out': ['R3: a stale renewal never shortens', /the stale renewal left/],
  'stale note written': ['R3: a stale note never replaces', /strictly equal/],
  'release by name': ['R4: releases by claim, never by name', /strictly equal/],
  'tombstone ignored': ['R4: an acquire that is delivered after its withdrawal', /nothing is left/],
  'no tombstone after a release': ['R4: a copy of an acquire that is delivered', /nothing is left/],
  'tombstone of one second': ['R4: a withdrawn claim is refused for as long', /a withdrawn claim holds/],
  'token is the wall clock': ['R5: tokens rise, and a lease keeps its token, while the server', /had been set by/],
  'token is the wall clock in seconds': ['R5: raises the token at each grant', / after /],
  'renewal gets another token': ['R5: renews a lease with the same token', /strictly equal/],
  'grant overstates the ttl': ['R6: passes an expired lease on', /that were granted/],
  'renewal overstates the ttl': ['R6: counts the ttl from the last renewal', /it was passed on/],
  'renewal revives': ['R6: neither a renewal nor a release revives an expired lease', /strictly equal/],
  'renewal brings the old note back': ['R7: keeps the note through renewals', /strictly equal/],
  'acquire brings the old note back': ['R7: keeps the note through renewals', /deep-equal/],
  'note renews': ['R7: a new note changes neither the end', /ms remain/],
  'keeps no position': ['R8: keeps the position of a waiter that asks in time', /strictly equal/],
  'no grace period': ['R8: skips a dead waiter after its grace period, whatever', /does not hold/],
  'dead crowd blocks': ['R8: a process that died with many waiters', /does not hold/],
  'grace period ignores the round trip': ['R8: a waiter with a round trip of 600 ms', /false/],
  'round trip has no limit': ['R8: skips a dead waiter after its grace period, whatever', /does not hold/],
  'queue jumped': ['R8: a claim that does not queue never overtakes', /served before the waiter/],
  'wake lost': ['R9: a break wakes the first waiter', /the first waiter is woken/],
  'release grants the name to a waiter': ['R9: a message grants nothing', /after the release/],
  'kept waiter is not woken': ['R9: a waiter holds soon after the server', /the waiter holds/],
  'wakes who watches no more': ['R9: wakes no waiter whose watch was stopped', /strictly equal/],
  'break does not raise the token': ['R10: a break frees the name and outranks the old holder', / after /],
  'break of a free name': ['R10: a break of a free name changes nothing', /strictly equal/],
  'break ignores the token': ['R10: a break with a token ends only the lease', /strictly equal/],
  'break clears the queue': ['R10: a break keeps the queue', /strictly equal/],
  'inspect shows an expired holder': ['R11: shows no expired lease', /it is no longer shown/],
  'name taken for a prefix': ['R11: shows one name', /deep-equal/],
  'names differ by letters only': ['R11: distinguishes similar names', /should hold/],
  'loss never reported': ['R12: a loss is reported by onLoss', /the loss is reported/],
  'loss reported for a held lease': ['R12: a loss is reported by onLoss', /that is held/],
  'given up is sent': ['R13: does not send a request that was given up', /rejection.*: acquire$/],
  'close releases all leases': ['R13: closing one client', /falsy|truthy/],
  // Mistakes that stores over MySQL, MongoDB and DynamoDB easily make.
  'owner taken for the id': ['R1: distinguishes claims of one owner by their ids', /holds .* and should not/],
  'copy granted again while under way': ['R1: copies of a claim that arrive together get the same lease', /tokens/],
  'one tombstone a name': ['R4: refuses each withdrawn claim', /deep-equal/],
  'tombstone ends with a lease': ['R4: refuses each withdrawn claim', /deep-equal/],
  'counter lost in a restart': ['R5: raises tokens across a restart', / after /],
  'conflict taken for gone': ['R6: never reports a held lease as gone', /deep-equal/],
  'unchanged note taken for gone': ['R7: shows the latest note', /strictly equal/],
  'watch armed late': ['R9: a break wakes the first waiter', /the first waiter is woken/],
  'stale break carried out': ['R10: a stale break takes the name', /strictly equal/],
  'end of a long name ignored': ['R11: accepts names, owners and notes of 255 bytes', /deep-equal/],
  'prefix taken for a pattern': ['R11: accepts every valid character', /prefix/],
  'copy ignores the other ends': [
    'R3: a stale copy of the acquire never shortens a lease of a shared name',
    /ms remain/,
  ],
  'tombstone only of a held name': ['R4: a withdrawn claim is refused while a slot', /should not/],
  'token of the slot': ['R5: tokens rise over all grants of a name', / after /],
  'slot lost with its holder': ['R6: grants the slot of a holder that stopped', /granted again/],
  'release ends all leases': ['R6: a renewal or a release is that of one claim', /deep-equal/],
  'note of all holders': ['R7: a note is that of one claim', /deep-equal/],
  'break ends one lease': ['R10: a break ends the leases of all holders', /strictly equal/],
  'break ends older leases': ['R10: a break with a token ends no other', /strictly equal/],
  'break ignores the slot': ['R10: a break with a slot ends only', /strictly equal/],
  'inspect shows one holder': ['R11: shows each holder with its slots', /deep-equal/],
  'holders in the order of their grants': ['R11: shows each holder with its slots', /deep-equal/],
  'inspect shows no units': ['R11: shows each waiter with its limit', /deep-equal/],
  'readers overtake': ['R8: readers never overtake a writer', /should not/],
  'small claims overtake': ['R8: claims for one slot never overtake', /should not/],
  'position of many units outlasts': ['R8: a dead waiter that does not fit', /does not hold/],
  'passed waiter counts on': ['R8: a passed waiter costs no grace period', /should hold/],
  'passed waiter never counts again': ['R8: a passed waiter counts again', /was overtaken/],
  'no chain of wakes': ['R9: the readers that wait for a writer', /is woken/],
  'no wake of the next after a grant': ['R9: the third waiter is woken in time', /is woken/],
  'no wake after a withdrawal': ['R9: the withdrawal of a first waiter', /is woken/],
  'wake only of a free name': ['R9: a waiter for two slots is woken', /is woken/],
  'kept waiter is forgotten after a grant': ['R15: a waiter whose grant was not accepted', /the waiter is woken/],
  'lost position is not noticed': ['R15: a waiter whose position was deleted', /it asks/],
  'inspect ends after a page': ['R11: shows each of 1,200 names once', /deep-equal/],
}
