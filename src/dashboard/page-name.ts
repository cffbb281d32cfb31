import { BREAK_SCRIPT, BREAK_STYLE } from './page-break.ts'
import { HOLDERS_SCRIPT, HOLDERS_STYLE } from './page-holders.ts'
import { TABLE_SCRIPT, TABLE_STYLE } from './page-table.ts'

const NAME = `
// The page is built once for each name. Then only changed parts are replaced, so that typing is not disturbed.
function build(page, name) {
  const back = el('button', '← All names'), title = el('h2', '', 'title'), parts = {
    signs: el('div', '', 'signs'), facts: el('dl', '', 'facts'), holding: el('h2'), holders: holdersTable(), nobody: el('p', '', 'dim'),
    queue: queueTable(), idle: el('p', '', 'dim'), servers: el('h2', 'Servers'), nodes: grid('nodes', [['Server', 'who'], ['State', 'state']]),
    breaking: look.access === 'operate' ? breaking(name) : el('p'),
  }
  const { signs, facts, holding, holders, nobody, queue, idle, servers, nodes } = parts
  back.onclick = () => { location.hash = '' }
  page.dataset.name = name
  page.parts = parts
  page.replaceChildren(back, title, signs, facts, holding, holders, nobody,
    el('h2', 'Queue'), queue, idle, servers, nodes, parts.breaking)
  title.tabIndex = -1
  title.focus({ preventScroll: true })
}
async function renderOne() {
  const name = shown, page = $('one')
  if (page.dataset.name !== name) build(page, name)
  const answer = await fetch(url({ api: 'name', name }), { signal: AbortSignal.timeout(10000) })
  const one = await answer.json()
  if (shown !== name) return
  const { signs, facts, holding, holders, nobody, queue, idle, servers, nodes, breaking } = page.parts
  if (one.error !== undefined) return facts.replaceChildren(...boxes([['State', one.error]]))
  put(page.querySelector('.title'), one.title)
  signs.replaceChildren(...one.signs.map(text => el('p', text, 'bad')))
  facts.replaceChildren(...boxes(factsOf(one)))
  put(holding, one.isMarker ? 'Marker' : 'Holders')
  showHolders(holders, one)
  // A name that has been free for long is forgotten.
  put(nobody, one.leases.length > 0 ? '' : one.state === 'unknown' ? 'Unknown' : 'None was seen in the last minute')
  showQueue(queue, one)
  put(idle, one.waiters.length > 0 ? '' : one.state === 'unknown' ? 'Unknown' : 'Nobody waits')
  rowsOf(nodes, one.nodes, ({ name, state, remaining, reason }) =>
    [name, [name], [state + (remaining === undefined ? '' : ', votes again in ' + span(remaining)), reason]])
  servers.hidden = nodes.hidden
  breaking.show?.(one)
}
function factsOf({ state, use, isMarker, at, leases: [lease], waiters }) {
  const waiting = [['Waiters', waiters.length === 0 ? 'none' : String(waiters.length)]]
  if (waiters.length > 0) waiting.push(['Longest wait', '≥ ' + span(Math.max(...waiters.map(({ waited }) => waited)))])
  if (state === 'unknown') return [['State', 'Unknown: it was not seen' + (look.isPartial ? ', and only some names are read' : '')]]
  if (state === 'free') return [['State', 'Free'], ...waiting]
  if (use !== null) return [['Held', use], ...waiting]
  const { owner, from, isSinceGrant, remaining } = lease, age = least(isSinceGrant, at - from)
  if (isMarker) return [['Ran', 'by ' + owner], ['Started', age + ' ago'], ['Counts for', 'another ' + span(remaining)]]
  return [['Held by', owner], ['Held for', age], ['Renew by', 'in ' + span(remaining)], ...waiting]
}
`

/** The part of the script that shows one name. */
export const NAME_SCRIPT: string = TABLE_SCRIPT + HOLDERS_SCRIPT + BREAK_SCRIPT + NAME

/** The style of that part. */
export const NAME_STYLE: string = `
:root { --bar: light-dark(#1f6fd0, #5c9df0); --danger: light-dark(#b3261e, #b8362d) }${TABLE_STYLE}${HOLDERS_STYLE}${BREAK_STYLE}
.title { font-size: 1.5rem; line-height: 1.3; overflow-wrap: anywhere; white-space: pre-wrap }
#one > button { margin-top: 1rem } .signs p { margin: 0 0 .75rem; border-left: .25rem solid var(--bad); padding-left: .75rem }
.title:focus { outline: none } .facts { display: flex; flex-wrap: wrap } .facts div { flex: 1 1 9rem } @media (min-width: 44.01rem) { .facts div { max-width: 18rem } } .facts dd { font-size: 1rem }
.stale #one :is(.signs, .facts, .grid) { --ink: var(--old); --dim: var(--old); --bad: var(--old); --bar: var(--old); color: var(--old) }
`
