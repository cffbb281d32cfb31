/**
 * The script of the page, for browsers. Texts of the store only ever become text nodes. Without a library: there is one
 * table whose rows are kept by name, and the rest is small enough to be built again.
 */
export const SCRIPT: string = String.raw`'use strict'
const $ = id => document.getElementById(id)
const token = new URLSearchParams(location.search).get('token')
if (token !== null) history.replaceState(null, '', location.pathname + location.hash)
const headers = token === null ? {} : { authorization: 'Bearer ' + token }
const url = query => location.pathname + '?' + new URLSearchParams(query)
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
// The longest wait first, then names with changes, then those with the least time left.
function order(a, b) {
  return (b.waited ?? -1) - (a.waited ?? -1) || (a.remaining ?? 1e15) - (b.remaining ?? 1e15) || (a.name < b.name ? -1 : 1)
}
function facts(list) {
  $('facts').replaceChildren(...list.map(([term, value]) => {
    const box = el('div')
    box.append(el('dt', term), el('dd', value))
    return box
  }))
}
function render() {
  const { names, changes } = look
  const held = names.filter(each => each.owner !== null)
  const waits = names.filter(each => each.waited !== null).sort(order)
  const first = waits[0]
  const verdict = $('verdict')
  verdict.className = look.failure !== null ? 'bad' : ''
  put(verdict, look.failure !== null ? 'The store cannot be read: ' + look.failure
    : first ? 'Longest wait: ' + first.title + ', at least ' + span(first.waited) : 'Nobody waits')
  const least = look.isPartial ? 'at least ' : ''
  const count = list => look.failure !== null ? 'unknown' : least + list
  facts([
    ['Names held', count(held.length)],
    ['Waiting', count(names.reduce((sum, each) => sum + each.waiters, 0))],
    ['Oldest wait, as seen', look.failure !== null ? 'unknown' : first ? span(first.waited) : 'none'],
    ['Changes of holder since ' + clock(look.since), String(changes.length) + (changes.length === 10 ? ' or more' : '')],
    ['Leases lost by this process', look.lost === null ? 'unknown' : String(look.lost)],
  ])
  const filter = $('filter').value.toLowerCase()
  const wanted = names.filter(each => (each.owner !== null || each.waiters > 0) &&
    (each.name + ' ' + each.owner + ' ' + each.note).toLowerCase().includes(filter)).sort(order)
  const keep = new Set(wanted.map(each => each.name))
  for (const [name, row] of rows) if (!keep.has(name)) { row.remove(); rows.delete(name) }
  let before = null
  for (const each of wanted) {
    let row = rows.get(each.name)
    if (!row) {
      row = el('tr')
      const link = el('button', each.title, 'name')
      link.onclick = () => { location.hash = encodeURIComponent(each.name) }
      const cell = el('td')
      cell.append(link)
      row.append(cell, ...['Held by', 'Left', 'Waiting', 'Note'].map(title => {
        const made = el('td')
        made.dataset.title = title
        return made
      }))
      rows.set(each.name, row)
    }
    put(row.children[1], each.owner ?? 'free')
    put(row.children[2], each.owner === null ? '' : span(each.remaining))
    put(row.children[3], each.waiters === 0 ? '' : each.waiters + ', ' + span(each.waited))
    put(row.children[4], each.note)
    const at = before === null ? $('rows').firstChild : before.nextSibling
    if (at !== row) $('rows').insertBefore(row, at)
    before = row
  }
  $('changes').replaceChildren(...changes.map(each =>
    el('li', clock(each.at) + '  ' + each.name + ': ' + each.from + ' → ' + each.to)))
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
    const back = el('button', '← All names')
    back.onclick = () => { location.hash = '' }
    page.replaceChildren(back, el('h2', name), el('div', 'Loading …', 'body'))
    if (look?.access === 'operate') page.append(...breaking(name))
    back.focus()
  }
  const answer = await fetch(url({ api: 'name', name }), { headers })
  if (!answer.ok || shown !== name) return
  const { holders, waiters, slots } = await answer.json()
  const row = look.names.find(each => each.name === name)
  const state = row?.owner != null
    ? 'Held by ' + row.owner + ', token ' + row.token + ', ' + span(row.remaining) + ' left unless renewed' + (row.note && '. Note: ' + row.note)
    : 'Not held, as of ' + clock(look.at)
  page.querySelector('.body').replaceChildren(el('p', state),
    ...section('Queue', waiters.map(each => each.owner + (each.note && ' · ' + each.note) + ', seen for ' + span(look.at - each.since)), 'Nobody waits'),
    ...(slots.length > 0 ? section('Slots', slots.map(each => each.title + ': ' + (each.owner ?? 'free')), '') : []),
    ...section('Holders since ' + clock(look.since), holders.map(each =>
      clock(each.from) + ' to ' + clock(each.to) + '  ' + each.owner + ', token ' + each.token), 'None was seen'))
}
function breaking(name) {
  const form = el('form')
  const typed = el('input')
  typed.setAttribute('aria-label', 'Type the name to break it')
  typed.placeholder = name
  const result = el('p', '', 'dim')
  result.setAttribute('role', 'status')
  const button = el('button', 'Break')
  form.append(typed, ' ', button)
  form.onsubmit = async event => {
    event.preventDefault()
    if (typed.value !== name) return put(result, 'Type the name exactly to break it')
    const answer = await fetch(url({ api: 'break', name, typed: typed.value }),
      { method: 'POST', headers: { ...headers, 'x-holdfast-change': '1' } })
    const said = await answer.json()
    put(result, said.error ?? (said.broken ? 'Taken from its holder. Token ' + said.token + ' is higher than its token.' : 'It was free'))
  }
  return [el('h2', 'Break'), el('p', 'Takes the lease from its holder, who may go on working until its next renewal. Type the name:', 'dim'), form, result]
}
function route() {
  try { shown = decodeURIComponent(location.hash.slice(1)) } catch { shown = '' }
  $('all').hidden = shown !== ''
  $('one').hidden = shown === ''
  draw()
}
function draw() {
  if (!look) return
  put($('state'), 'Watched since ' + clock(look.since) + ', every ' + span(look.pause) + (look.access === 'read' ? ', read only' : '') +
    (look.isPartial ? ', only the first names' : ''))
  if (shown === '') { delete $('one').dataset.name; render() } else renderOne().catch(() => {})
}
async function follow() {
  const answer = await fetch(url({ api: 'events' }), { headers })
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
  }
}
async function run() {
  for (;;) {
    try { await follow() } catch (error) {
      const verdict = $('verdict')
      verdict.className = 'bad'
      put(verdict, 'Not connected: what is shown may be old')
      put($('state'), String(error.message))
      await new Promise(resolve => setTimeout(resolve, 1000))
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
