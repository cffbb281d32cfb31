/** The first screen. */
export const OVERVIEW: string = `<div id="verdict"><p id="say" role="status"></p><p id="why"></p></div>
<main id="all">
<dl id="counts"></dl>
<label id="search">Filter <input id="filter" type="search" placeholder="name, holder or note"></label>
<table id="rows"><thead><tr><th class="name">Name</th><th class="holder">Holder</th><th class="held">Held</th><th class="due">Renew by</th>
<th class="count">Waiters</th><th class="wait">Longest wait</th><th class="note">Note</th></tr></thead></table>
<p id="none" role="status"></p>
<section id="past"><h2>Changes of holder</h2><p id="sum" class="dim"></p><ul id="changes"></ul></section>
</main>
<main id="one" hidden></main>`

/** The script of the first screen: one table, in which each name has its own body. */
export const OVERVIEW_SCRIPT: string = `
const table = $('rows'), bodies = new Map()
const COLUMNS = ['name', 'holder', 'held', 'due', 'count', 'wait', 'note']
let filtered = '', room = {}

function line(name) {
  const made = el('tr', '', name)
  made.append(...COLUMNS.map(column => el('td', '', column)))
  return made
}
// The end of a name or a holder identifies it. So a text that is too long loses its middle.
function fit() {
  const isNarrow = matchMedia('(max-width: 44rem)').matches
  for (const column of ['name', 'holder']) room[column] = Math.max(16, isNarrow ? 24 : (table.querySelector('th.' + column).clientWidth - 16) / 8.5 | 0)
}
function middle(text, column) {
  const all = [...text], half = room[column] / 2
  return all.length <= room[column] ? text : all.slice(0, Math.ceil(half) - 1).join('') + '…' + all.slice(-Math.floor(half)).join('')
}
// Fills the cells of a name, or of one of its slots. A text that is cut can still be read in full.
function fill(cells, { owner, held, isSinceGrant, remaining, isMarker, waiters, waited, note }) {
  const texts = [middle(owner ?? 'free', 'holder'), held === null ? '' : isMarker ? 'ran' : (isSinceGrant ? '' : '≥ ') + span(held), remaining === null || isMarker ? '' : span(remaining),
    waiters ? String(waiters) : '', waiters ? span(waited) : '', note]
  texts.forEach((text, index) => put(cells[index + 1].lastChild ?? cells[index + 1], text))
  cells[1].title = owner ?? ''
  cells[6].title = note
}
function add(each) {
  const body = el('tbody'), main = line('main'), sign = el('tr', '', 'sign'), link = el('button', '', 'link'), said = el('td')
  link.onclick = () => go(each.name)
  link.title = each.title
  main.firstChild.append(link)
  said.colSpan = COLUMNS.length
  sign.append(said)
  body.append(main, sign)
  bodies.set(each.name, body)
  return body
}
// Makes the row of a shared name open to its slots.
function share(body, cell) {
  const opener = el('button', ' ', 'open')
  opener.setAttribute('aria-expanded', 'false')
  opener.onclick = () => {
    opener.setAttribute('aria-expanded', String(body.classList.toggle('opened')))
    show(body, body.each, body.children[1].textContent, false)
  }
  cell.replaceChildren(opener)
}
// While a pointer or the keyboard is in the rows, no line appears or vanishes that would move others.
function show(body, each, sign, isStill) {
  body.each = each
  const [main, { firstChild: said }] = body.children
  const isShared = each.slots.length > 0, cell = main.children[1]
  if (isShared && !cell.firstElementChild) share(body, cell)
  if (!isShared && !isStill && cell.firstElementChild) cell.replaceChildren('')
  put(main.firstChild.firstChild, middle(each.title, 'name'))
  fill(main.children, each)
  body.classList.toggle('stuck', each.troubles.length > 0)
  body.classList.toggle('marker', each.isMarker)
  if (!isStill || said.textContent !== '') put(said, sign || (isStill ? '–' : ''))
  const slots = body.classList.contains('opened') ? each.slots : []
  while (!isStill && body.children.length < slots.length + 2) body.append(line('slot'))
  while (!isStill && body.children.length > slots.length + 2) body.lastChild.remove()
  ;[...body.children].slice(2).forEach((made, index) => {
    const slot = slots[index] ?? { title: '–', owner: null, held: null, remaining: null, note: '' }
    put(made.firstChild, slot.title)
    fill(made.children, slot)
  })
}
const isWanted = (each, filter) => [each, ...each.slots].map(({ title, owner, note }) => [title, owner, note].join(' ')).join(' ').toLowerCase().includes(filter)
function renderRows() {
  const filter = $('filter').value.toLowerCase()
  const isStill = filter === filtered && (table.matches(':has(:focus-visible)') || (matchMedia('(hover: hover)').matches && table.matches(':hover')))
  filtered = filter
  const present = look.names.filter(each => each.owner !== null || each.waiters > 0)
  let wanted = present.filter(each => isWanted(each, filter))
  if (isStill) {
    const now = new Map(look.names.map(each => [each.name, each]))
    const gone = { owner: '–', held: null, remaining: null, waiters: 0, note: '', troubles: [], slots: [] }
    wanted = [...[...table.tBodies].map(({ each }) => now.get(each.name) ?? { ...each, ...gone }), ...wanted.filter(each => !bodies.has(each.name))]
  }
  table.hidden = wanted.length === 0
  fit()
  const said = new Set()
  wanted.forEach((each, index) => {
    const signs = each.troubles.filter(trouble => !said.has(trouble))
    for (const trouble of signs) said.add(trouble)
    const isNew = !bodies.has(each.name), body = bodies.get(each.name) ?? add(each)
    show(body, each, signs.map(trouble => look.troubles[trouble]).join('. '), isStill && !isNew)
    if (table.tBodies[index] !== body) table.insertBefore(body, table.tBodies[index] ?? null)
  })
  const kept = new Set(wanted.map(each => each.name))
  for (const [name, body] of bodies) if (!kept.has(name)) { body.remove(); bodies.delete(name) }
  $('search').hidden = present.length === 0 && filter === ''
  put($('none'), wanted.length === 0 && present.length > 0 ? 'No name, holder or note contains “' + $('filter').value + '”' : '')
}
// Shows the answer to "is anything wrong?". An old answer is dim, and each screen says that it is old.
function judge({ level, say: [before, text, after], name, owner, why }, isOld) {
  document.body.className = isOld ? 'stale' : ''
  $('verdict').className = level
  $('verdict').hidden = shown !== '' && !isOld
  put($('why'), why)
  if (text === '') return put($('say'), before)
  const link = $('lead') ?? el('button', '', 'link')
  link.id = 'lead'
  link.onclick = () => { if (name === undefined) { $('filter').value = owner; draw() } else go(name) }
  put(link, text)
  // Do not replace an equal link: a user who is about to press it keeps the focus.
  if (!link.isConnected || $('say').textContent !== before + text + after) $('say').replaceChildren(before, link, after)
}
function render() {
  const { counts, changes } = look
  const least = look.isPartial ? '≥ ' : ''
  $('counts').replaceChildren(...boxes([['May be stuck', counts?.stuck], ['Waiting', counts?.waiting], ['Held', counts?.held]]
    .map(([term, count]) => [term, count === undefined ? 'unknown' : least + count])))
  ;[...$('counts').children].forEach((box, index) => { box.className = counts && [counts.stuck, counts.waiting][index] > 0 ? ['bad', 'warn'][index] : '' })
  renderRows()
  $('past').hidden = look.names.length === 0 && changes.length === 0
  put($('sum'), [(look.changed || 'None') + ' since ' + clock(look.since), ...(look.takeovers > 0 ? [look.takeovers + ' taken over'] : []),
    ...(look.lost === null ? [] : ['This process lost ' + (look.lost === 1 ? '1 lease' : (look.lost || 'no') + ' leases')])].join('. '))
  $('changes').replaceChildren(...changes.map(each => {
    const item = el('li')
    item.append(el('span', clock(each.at), 'dim'), ' ' + each.title + ': ' + each.from + ' → ' + (each.to || 'nobody'), el('span', each.isTakeover ? ', no longer renewed' : '', 'warn'))
    return item
  }))
}
table.onmouseleave = () => { if (look && shown === '') render() }
`

/** The style of the first screen. */
export const OVERVIEW_STYLE: string = `
#store { color: var(--dim); font-weight: 400; margin-left: .25rem; overflow-wrap: anywhere }
#verdict { margin: 1.5rem 0 1.25rem; border-left: .25rem solid var(--ok); padding-left: .75rem } #verdict.warn { border-color: var(--warn) }
#verdict.bad { border-color: var(--bad) } #verdict p { margin: 0; overflow-wrap: anywhere } .bad #say { color: var(--bad) }
#verdict #say { font-size: 1.375rem; font-weight: 600; line-height: 1.3; min-height: 1.3em } #why { min-height: 1.5em } #say .link { font-weight: inherit }
button.link { border: 0; padding: 0; text-align: left; text-decoration: underline; text-underline-offset: .2em; cursor: pointer }
#counts { grid-template-columns: repeat(3, minmax(0, 10rem)); gap: .75rem; margin-bottom: 1.25rem }
#counts dd { font-size: 1.5rem; line-height: 1.25; font-variant-numeric: tabular-nums } #counts .bad dd { color: var(--bad) } #counts .warn dd { color: var(--warn) }
#search { display: block; margin: 0 0 .75rem } #filter { width: 20rem; margin-left: .25rem } ::placeholder { color: var(--dim); opacity: 1 }
#rows { width: 100%; border-collapse: collapse; table-layout: fixed; font-size: .9375rem }
#rows th { color: var(--dim); font-size: .8125rem; font-weight: 500; text-align: left }
#rows th, #rows td { padding: .375rem 1rem .375rem 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
#rows tbody { border-top: 1px solid var(--line) } #rows tbody:hover { background: var(--soft) }
#rows .held, #rows .due, #rows .count, #rows .wait { text-align: right; font-variant-numeric: tabular-nums }
#rows th.held, #rows th.due { width: 5.5rem } #rows th.count { width: 4.75rem } #rows th.wait { width: 7.5rem } #rows th.holder, #rows th.note { width: 20% } #rows .wait { padding-right: 1.5rem }
#rows .link, #rows .open { max-width: 100%; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom }
#rows td:has(:focus-visible) { overflow: visible } #rows .link { white-space: pre; font-weight: 500; text-decoration-color: var(--dim) } #rows .note, #rows .slot { color: var(--dim) }
#rows .open { border: 0; padding: 0; cursor: pointer } #rows .open::after { content: ' ▸' } #rows .open[aria-expanded=true]::after { content: ' ▾' }
#rows .slot td { padding-top: 0 } #rows .slot .name { padding-left: 1.25rem }
#rows .sign td { padding-top: 0; color: var(--bad); white-space: normal; overflow-wrap: anywhere } #rows .sign:has(td:empty) { display: none }
#rows .stuck { box-shadow: inset .25rem 0 var(--bad) } #rows .stuck .name, #rows .stuck .sign td { padding-left: .75rem } #rows .stuck .slot .name { padding-left: 2rem }
#none:empty { display: none } #none { color: var(--dim); padding: 1.5rem 0; margin: 0; text-align: center; overflow-wrap: anywhere }
#sum { margin-bottom: .5rem } #changes { list-style: none; padding: 0; font-variant-numeric: tabular-nums } #changes .warn { color: var(--warn) }
.stale #all { --ink: var(--old); --dim: var(--old); --bad: var(--old); --warn: var(--old); color: var(--old) } .stale #counts dd { font-size: 1rem; line-height: 1.875rem }
@media (min-width: 44.01rem) and (max-width: 60rem) { #rows th.note, #rows td.note { width: 0; padding: 0 } #rows .wait { padding-right: 0 } }
@media (max-width: 44rem) {
  body { font-size: 15px; padding: .75rem } #verdict { margin: .75rem 0 } #verdict #say { font-size: 1.2rem } #filter { display: block; width: 100%; margin: 0 }
  #counts { grid-template-columns: repeat(3, 1fr); gap: .5rem; margin-bottom: .75rem } #counts dt { white-space: nowrap } #counts div { padding: .35rem .6rem }
  #rows, #rows tbody, #rows .sign td { display: block } #rows thead { position: absolute; clip-path: inset(50%) }
  #rows tr:not(.sign) { display: grid; grid-template-columns: minmax(0, auto) minmax(0, 1fr) auto auto; column-gap: .35rem } #rows tbody { padding: .4rem 0 }
  #rows tr:not(.sign) > td { padding: 0 } #rows .due { display: none } #rows .main td:nth-child(n + 2) { color: var(--dim) }
  #rows .name { grid-area: 1 / 1 / 2 / 3 } #rows .held { grid-area: 1 / 3 / 2 / 5 } #rows .main td:nth-child(n + 5), #rows .main .holder { grid-row: 2 }
  #rows td.holder { grid-column: 1 } #rows td.note { grid-column: 2 } #rows td.count { grid-column: 3 } #rows td.wait { grid-column: 4 }
  #rows tbody:not(.marker) .main .held:not(:empty)::before { content: 'held ' } #rows .count:not(:empty)::after { content: ' wait,' } #rows .note:not(:empty)::before { content: '· ' }
  #rows tr.slot:not(.sign) { grid-template-columns: 5rem minmax(0, auto) minmax(0, 1fr) auto; padding: .2rem 0 0 .75rem } #rows .slot .name { grid-area: 1 / 1 }
  #rows .slot .holder { grid-area: 1 / 2 } #rows .slot .note { grid-area: 1 / 3 } #rows .slot .held { grid-area: 1 / 4 }
  #rows .stuck { padding-left: .75rem } #rows .stuck .sign td, #rows tr td.name { padding: 0 !important }
}
@media (min-width: 60rem) { #say, body:not(.stale) #why { white-space: nowrap; overflow: hidden; text-overflow: ellipsis } }
`
