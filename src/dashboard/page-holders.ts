/** The part of the script that shows the holders of one name, as a timeline, and its queue. */
export const HOLDERS_SCRIPT: string = `
// A time on another day is shown with its date.
function time(at) {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date().toDateString()
  return (isToday ? '' : date.toLocaleDateString([], { month: 'short', day: 'numeric' }) + ', ') + clock(at)
}
const least = (isExact, ms) => (isExact ? '' : '≥ ') + span(ms)
const holdersTable = () => grid('holders', [['Slot', 'slot'], ['Holder', 'who'], ['', 'lane'], ['From', 'from'], ['To', 'to'], ['For', 'for'], ['Token', 'token']])
function showHolders(made, { at, leases, isSlotted, isMarker, signs }) {
  made.classList.toggle('slotted', isSlotted)
  const start = Math.min(...leases.map(({ from }) => from)), whole = Math.max(at - start, 1)
  put(made.querySelector('th.lane'), time(start) + ' to now')
  const rows = rowsOf(made, leases, ({ owner, note, token, slots, isSinceGrant, isOverdue, from, to, remaining }, index) => [
    token + slots, [slots === leases[index - 1]?.slots ? '' : slots], [owner, note], [''], [(isSinceGrant ? '' : 'before ') + time(from)],
    [to === null ? 'now' : time(to), isOverdue ? 'no longer renewed' : to === null ? 'renew in ' + span(remaining) : ''],
    [least(isSinceGrant, (to ?? at) - from)], [token]])
  rows.forEach((row, index) => {
    const { from, to, isOverdue } = leases[index], bar = row.children[2].firstChild
    const isStuck = isOverdue || (to === null && !isSlotted && signs.length > 0)
    row.className = [isStuck && 'trouble', isOverdue && 'late', (to !== null || isMarker) && 'over'].filter(Boolean).join(' ')
    // The style is set by script, because the policy of the page refuses a style in HTML.
    bar.style.marginLeft = 'min(' + 100 * (from - start) / whole + '%, 100% - 3px)'
    bar.style.width = 100 * ((to ?? at) - from) / whole + '%'
  })
}
const queueTable = () => grid('queue', [['', 'place'], ['Waiter', 'who'], ['Wants', 'want'], ['Waited', 'for']])
function showQueue(made, { waiters }) {
  made.classList.toggle('plain', waiters.every(({ want }) => want === ''))
  rowsOf(made, waiters, ({ owner, note, want, waited }, index) => [String(index), [String(index + 1)], [owner, note], [want], ['≥ ' + span(waited)]])
}
`

/** The style of that part. */
export const HOLDERS_STYLE: string = `
.holders:not(.slotted) .slot, .queue.plain .want { display: none }
.grid td.slot { font-weight: 600 } .token { color: var(--dim) } .queue { max-width: 40rem }
.slotted tbody tr:has(.slot span:empty) { border-color: transparent }
.holders th.lane { text-align: right } .lane { width: 30% }
td.lane { background: linear-gradient(var(--soft) 0 0) 0 .2rem / 100% .875rem content-box content-box no-repeat }
td.lane span { display: block; margin-top: .2rem; min-width: 3px; height: .875rem; border-radius: 2px; background: var(--bar) }
.trouble td.lane span { background: var(--bad) } .late .to small { color: var(--bad) }
.over td.lane span { background: var(--dim) } .trouble.over td.lane span { border-right: 3px solid var(--bad) }
@media (max-width: 44rem) {
  .holders tr { grid-template: 'slot slot slot' 'who who for' 'lane lane lane' 'from to token' / auto 1fr auto }
  .grid .slot { grid-area: slot } .who { grid-area: who } .for { grid-area: for } .lane { grid-area: lane; width: auto } .want { grid-area: want }
  .from { grid-area: from } .to { grid-area: to } .token { grid-area: token } .place { grid-area: place }
  .from span::after { content: ' –' } .holders :is(.from, .to, .token) { font-size: .8125rem; color: var(--dim) } .holders .to small { display: inline-block; margin-left: .5em }
  .queue tr { grid-template: 'place who for' '. want want' / 1.5rem 1fr auto }
}
`
