/** The part of the script that shows all names: one table, whose rows are kept by name. */
export const OVERVIEW_SCRIPT: string = `
const rows = new Map()
// Holders that may be stuck first, then the longest wait, then the longest hold: rows then seldom change places.
function order(a, b) {
  return b.signs.length - a.signs.length || (b.waited ?? -1) - (a.waited ?? -1) || (b.held ?? -1) - (a.held ?? -1) || (a.name < b.name ? -1 : 1)
}
// The answer to "is anything wrong?", and a link to it.
function judge(say, why, each) {
  $('verdict').className = $('why').className = look.failure !== null || each?.signs.length > 0 ? 'bad' : ''
  put($('say'), say)
  put($('why'), why)
  $('lead').hidden = !each
  if (!each) return
  put($('lead'), each.title)
  $('lead').onclick = () => go(each.name)
}
function render() {
  const { names, changes } = look
  const taken = names.filter(each => each.owner !== null && !each.isMarker)
  const stuck = names.filter(each => each.signs.length > 0).sort(order)
  const waits = names.filter(each => each.waited !== null).sort((a, b) => b.waited - a.waited)
  const first = waits[0]
  if (look.failure !== null) judge('The store cannot be read', look.failure)
  else if (stuck[0]) judge(stuck.length > 1 ? stuck.length + ' holders may be stuck, first' : 'May be stuck:', stuck[0].signs[0] + (stuck[0].waiters > 0 ? '. Waiting: ' + stuck[0].waiters : ''), stuck[0])
  else if (first) judge('Longest wait:', 'At least ' + span(first.waited), first)
  else if (look.search && look.search.usual === null) judge('Still looking for names', 'Of those found so far nobody waits, and no holder seems stuck')
  else judge('Nobody waits, and no holder seems stuck', look.isPartial ? 'Of the names that are shown' : '')
  const known = text => look.failure !== null ? 'unknown' : text
  const least = look.isPartial ? 'at least ' : ''
  $('facts').replaceChildren(...boxes([
    ['Names held', known(least + taken.length)],
    ['May be stuck', known(least + stuck.length)],
    ['Waiting', known(least + names.reduce((sum, each) => sum + each.waiters, 0))],
    ['Oldest wait, as seen', known(first ? span(first.waited) : 'none')],
    ['Changes of holder since ' + clock(look.since), look.changed + (look.takeovers > 0 ? ', ' + look.takeovers + ' taken over' : '')],
    ['Leases lost by this process', look.lost === null ? 'unknown' : String(look.lost)],
  ]))
  const filter = $('filter').value.toLowerCase()
  const wanted = names.filter(each => (each.owner !== null || each.waiters > 0) &&
    [each.name, each.owner, each.note, ...each.owners].join(' ').toLowerCase().includes(filter)).sort(order)
  const keep = new Set(wanted.map(each => each.name))
  for (const [name, row] of rows) if (!keep.has(name)) { row.remove(); rows.delete(name) }
  const { activeElement } = document
  let before = null
  for (const each of wanted) {
    let row = rows.get(each.name)
    if (!row) {
      row = el('tr')
      const link = el('button', each.title, 'name')
      link.onclick = () => go(each.name)
      const cell = el('td')
      cell.append(link, el('span', '', 'sign'))
      row.append(cell, ...['Held by', 'Held for', 'Left', 'Waiting', 'Note'].map(title => {
        const made = el('td')
        made.dataset.title = title
        return made
      }))
      rows.set(each.name, row)
    }
    const texts = [each.owner ?? 'free', held(each), each.owner === null ? '' : span(each.remaining),
      each.waiters === 0 ? '' : each.waiters + ', ' + span(each.waited), each.note]
    put(row.firstChild.lastChild, each.signs.join('. '))
    texts.forEach((text, index) => put(row.children[index + 1], text))
    const at = before === null ? $('rows').firstChild : before.nextSibling
    if (at !== row) $('rows').insertBefore(row, at)
    before = row
  }
  // A row that is moved loses the focus.
  if (activeElement !== document.activeElement && activeElement.isConnected) activeElement.focus({ preventScroll: true })
  $('changes').replaceChildren(...changes.map(each =>
    el('li', clock(each.at) + '  ' + each.title + ': ' + each.from + ' → ' + (each.to || 'nobody') + (each.isTakeover ? ', no longer renewed' : ''))))
}
`

/** Its style. */
export const OVERVIEW_STYLE: string = `
#verdict { font-size: 1.5rem; font-weight: 600; margin: 1rem 0 0; overflow-wrap: anywhere } #lead { font-weight: inherit }
#why { margin: 0 0 1rem; min-height: 1.5em; overflow-wrap: anywhere }
.sign { display: block; font-size: .875rem; color: var(--bad) } .sign:empty { display: none }
table { width: 100%; border-collapse: collapse; margin-top: .75rem } th { text-align: left; color: var(--dim); font-size: .8rem }
th, td { padding: .35rem .5rem .35rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; vertical-align: top }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%) }
  tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line) }
  td { display: block; border: 0; padding: 0 } td:empty { display: none }
  td[data-title]::before { content: attr(data-title) ' '; color: var(--dim) }
}
`
