import { NAME_SCRIPT } from './page-name.ts'
import { OVERVIEW_SCRIPT } from './page-overview.ts'

const COMMON = `'use strict'
const $ = id => document.getElementById(id)
// The path alone is not enough: with // at its start it would name another host.
const here = location.origin + location.pathname
// The server has answered the token with a cookie. So the token need not stay where others may read it.
if (new URLSearchParams(location.search).has('token')) history.replaceState(null, '', here + location.hash)
const url = query => here + '?' + new URLSearchParams(query)
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
  return s < 10 ? s.toFixed(1) + ' s' : s < 120 ? Math.round(s) + ' s' : s < 7200 ? Math.round(s / 60) + ' min' : s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' d'
}
const clock = at => new Date(at).toLocaleTimeString()
const go = name => { location.hash = encodeURIComponent(name) }
const held = each => each.held === null ? '' : (each.isSinceGrant ? '' : 'at least ') + span(each.held)
function boxes(list) {
  return list.map(([term, value]) => {
    const box = el('div')
    box.append(el('dt', term), el('dd', value))
    return box
  })
}
`

const FOLLOW = String.raw`
function route() {
  try { shown = decodeURIComponent(location.hash.slice(1)) } catch { shown = '' }
  $('all').hidden = shown !== ''
  $('one').hidden = shown === ''
  draw()
}
function draw() {
  if (!look) return
  const { failure, verdict } = look
  document.title = look.title
  put($('store'), look.store)
  put($('state'), failure !== null ? look.names.length > 0 ? 'Last seen at ' + clock(look.at) : '' : 'Watched since ' + clock(look.since) + ', every ' + span(look.pause) + (look.access === 'read' ? ', read only' : '') +
    (!look.search ? look.isPartial ? ', only the first names' : ''
      : look.search.usual === null ? '. Still looking for names among other keys, since ' + clock(look.search.began)
      : '. New names are found within about ' + span(look.search.usual)))
  judge(verdict, failure !== null)
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
    const answer = await fetch(url({ api: 'events' }), { signal: silence.signal })
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
    // If a stream ends at once, such as behind a proxy that keeps none open, pause before the next request.
    try { await follow(); if (performance.now() - began < 1000) await rest() } catch (error) {
      judge({ level: 'bad', say: ['Not connected to the dashboard', '', ''], why: error.message }, true)
      document.title = 'Not connected' + (look?.store ? ' · ' + look.store : '')
      put($('state'), look ? 'Last seen at ' + clock(look.at) : '')
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

/** The script of the page, for browsers, without a library. Texts of the store only ever become text nodes. */
export const SCRIPT: string = COMMON + OVERVIEW_SCRIPT + NAME_SCRIPT + FOLLOW
