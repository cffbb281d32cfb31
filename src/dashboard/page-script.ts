/**
 * The script of the page, for browsers. Texts of the store only ever become text nodes. Without a library: there is one
 * table whose rows are kept by name, and the rest is small enough to be built again.
 */
export const SCRIPT: string = String.raw`'use strict'
const $ = id => document.getElementById(id)
const token = new URLSearchParams(location.search).get('token')
// Not the path alone: with // at its beginning it would name another host.
const here = location.origin + location.pathname
if (token !== null) history.replaceState(null, '', here + location.hash)
const headers = token === null ? {} : { authorization: 'Bearer ' + token }
const url = query => here + '?' + new URLSearchParams(query)
const rows = new Map()
let look, shown = ''

function el(tag, text = '', name = '') {
  const made = document.createElement(tag)
  made.textContent = text
  made.className = name
  return made
}
function put(node, text) { if (node.textContent !== text) node.textContent = text }
function span(ms) {
  if (ms === null) return 'unknown'
  const s = ms / 1000
  return s < 10 ? s.toFixed(1) + ' s' : s < 120 ? Math.round(s) + ' s' : s < 7200 ? Math.round(s / 60) + ' min' : Math.round(s / 3600) + ' h'
}
const clock = at => new Date(at).toLocaleTimeString()
// Holders that may be stuck first, then the longest wait, then the longest hold: rows then seldom change places.
function order(a, b) {
  return b.signs.length - a.signs.length || (b.waited ?? -1) - (a.waited ?? -1) || (b.held ?? -1) - (a.held ?? -1) || (a.name < b.name ? -1 : 1)
}
const go = name => { location.hash = encodeURIComponent(name) }
const held = each => each.held === null ? '' : (each.isSinceGrant ? '' : 'at least ') + span(each.held)
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
function boxes(list) {
  return list.map(([term, value]) => {
    const box = el('div')
    box.append(el('dt', term), el('dd', value))
    return box
  })
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
    el('li', clock(each.at) + '  ' + each.name + ': ' + each.from + ' → ' + (each.to || 'nobody') + (each.isTakeover ? ', no longer renewed' : ''))))
}
function section(title, lines, none) {
  const list = el('ol')
  list.append(...(lines.length > 0 ? lines : [none]).map(line => el('li', line)))
  return [el('h2', title), list]
}
// Built once for each name; then only what changes is replaced, so that typing is not disturbed.
async function renderOne() {
  const name = shown
  const page = $('one')
  if (page.dataset.name !== name) {
    page.dataset.name = name
    page.dataset.token = ''
    const back = el('button', '← All names')
    back.onclick = () => { location.hash = '' }
    page.replaceChildren(back, el('h2', name, 'title'), el('div', 'Loading …', 'body'))
    if (look?.access === 'operate') page.append(...breaking(name))
    back.focus()
  }
  const answer = await fetch(url({ api: 'name', name }), { headers })
  if (!answer.ok || shown !== name) return
  const { signs, holders, seen, waiters, nodes } = await answer.json()
  const row = look.names.find(each => each.name === name)
  const state = el('dl')
  page.dataset.token = row?.token ?? ''
  offer(page.querySelector('select'), holders)
  const isUnknown = row === undefined && (look.failure !== null || look.isPartial)
  if (isUnknown) state.append(...boxes([['State', 'Unknown: it was not seen' + (look.isPartial ? ', and only some names are read' : '')]]))
  else if (row?.owner == null) state.append(...boxes([['State', 'Not held, as of ' + clock(look.at)]]))
  else if (holders.length > 0) state.append(...boxes([['Held', row.owner], ['Waiting', row.waiters === 0 ? 'nobody' : String(row.waiters)]]))
  else state.append(...boxes([['Held by', row.owner], ['Held for', held(row)], ['Left unless renewed', span(row.remaining)],
    ['Token', row.token], ...(row.note ? [['Note', row.note]] : [])]))
  page.querySelector('.body').replaceChildren(...signs.map(each => el('p', each, 'bad')), state,
    ...(holders.length > 0 ? section('Holders', holders.map(each => each.title + ': ' + each.owner + (each.note && ' · ' + each.note) +
      ', held for ' + held(each) + ', ' + span(each.remaining) + ' left, token ' + each.token), '') : []),
    ...section('Queue', waiters.map(each => each.owner + (each.note && ' · ' + each.note) + (each.units > 1 ? ', for ' + each.units + ' slots' : '') +
      ', seen for ' + span(look.at - each.since)), isUnknown ? 'Unknown' : 'Nobody waits'),
    ...(nodes.length > 0 ? section('Servers', nodes.map(each => each.name + ': ' + each.state + (each.remaining === undefined ? '' : ', votes again in ' + span(each.remaining)) +
      (each.reason === undefined ? '' : '. ' + each.reason)), '') : []),
    ...section('Seen since ' + clock(look.since), seen.map(each =>
      clock(each.from) + ' to ' + clock(each.to) + '  ' + each.owner + ', token ' + each.token), 'None was seen'))
}
// Of a shared name, the choice of the lease to break. It is kept while its lease is.
function offer(select, holders) {
  if (!select) return
  select.hidden = holders.length === 0
  const texts = holders.length === 0 ? [] : [['', 'Choose a lease'], ...holders.map(each => [each.token, each.title + ', ' + each.owner]), ['all', 'All of them']]
  if (select.dataset.texts === JSON.stringify(texts)) return
  select.dataset.texts = JSON.stringify(texts)
  const chosen = select.value
  select.replaceChildren(...texts.map(([value, text]) => {
    const option = el('option', text)
    option.value = value
    return option
  }))
  select.value = texts.some(([value]) => value === chosen) ? chosen : ''
}
function breaking(name) {
  const form = el('form')
  const which = el('select')
  which.setAttribute('aria-label', 'The lease to break')
  which.hidden = true
  const typed = el('input')
  typed.setAttribute('aria-label', 'Type the name to break it')
  typed.placeholder = name
  const result = el('p', '', 'dim')
  result.setAttribute('role', 'status')
  const button = el('button', 'Break')
  form.append(which, ' ', typed, ' ', button)
  form.onsubmit = async event => {
    event.preventDefault()
    if (typed.value !== name) return put(result, 'Type the name exactly to break it')
    if (!which.hidden && which.value === '') return put(result, 'Choose the lease to break, or all of them')
    const token = which.hidden ? $('one').dataset.token : which.value // of the holder on the screen
    if (!token) return put(result, 'Not broken: no holder is shown')
    const said = await fetch(url({ api: 'break', name, typed: typed.value, token }),
      { method: 'POST', headers: { ...headers, 'x-holdfast-change': '1' } })
      .then(answer => answer.json()).catch(error => ({ error: 'No answer came, so it may have been broken. ' + error.message }))
    put(result, said.error ?? (said.broken ? 'Taken from its holder. Token ' + said.token + ' is higher than its token.' : 'Not broken: that holder no longer has it'))
  }
  return [el('h2', 'Break'), el('p', 'Takes a lease from the holder that is shown, who may go on working until its next renewal. Type the name:', 'dim'), form, result]
}
function route() {
  try { shown = decodeURIComponent(location.hash.slice(1)) } catch { shown = '' }
  $('all').hidden = shown !== ''
  $('one').hidden = shown === ''
  draw()
}
function draw() {
  if (!look) return
  $('state').className = look.failure === null ? '' : 'bad'
  put($('state'), look.failure !== null ? 'The store cannot be read: ' + look.failure + (look.names.length > 0 ? '. Shown is what was seen at ' + clock(look.at) : '')
    : 'Watched since ' + clock(look.since) + ', every ' + span(look.pause) + (look.access === 'read' ? ', read only' : '') +
    (!look.search ? look.isPartial ? ', only the first names' : ''
      : look.search.usual === null ? '. Still looking for names among other keys, since ' + clock(look.search.began)
      : '. New names are found within about ' + span(look.search.usual)))
  if (shown === '') { delete $('one').dataset.name; render() } else renderOne().catch(() => {})
}
async function follow() {
  // A connection that is gone, such as after the machine slept, may never end by itself.
  const silence = new AbortController()
  let timer
  const wait = () => {
    clearTimeout(timer)
    const ms = Math.max(10000, 3 * (look?.pause ?? 0))
    timer = setTimeout(() => silence.abort(new Error('nothing came for ' + span(ms))), ms)
  }
  wait()
  try {
    const answer = await fetch(url({ api: 'events' }), { headers, signal: silence.signal })
    if (!answer.ok) throw new Error((await answer.json()).error)
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const parts = (text + value).split('\n\n')
      text = parts.pop()
      const last = parts.pop()
      if (last) { look = JSON.parse(last.slice(6)); draw() }
      wait()
    }
  } finally { clearTimeout(timer) }
}
const rest = () => new Promise(resolve => setTimeout(resolve, 1000))
async function run() {
  for (;;) {
    const began = performance.now()
    // A stream that ends at once, such as behind a proxy that keeps none open, is not asked for without a pause.
    try { await follow(); if (performance.now() - began < 1000) await rest() } catch (error) {
      $('verdict').className = 'bad'
      put($('say'), 'Not connected: what is shown may be old')
      $('lead').hidden = true
      put($('why'), '')
      put($('state'), 'Not connected: ' + error.message)
      $('state').className = 'bad'
      await rest()
    }
  }
}
addEventListener('hashchange', route)
addEventListener('keydown', event => {
  if (event.key === '/' && event.target.tagName !== 'INPUT') { event.preventDefault(); $('filter').focus() }
  if (event.key === 'Escape' && shown !== '') location.hash = ''
})
$('filter').oninput = draw
route()
run()
`
