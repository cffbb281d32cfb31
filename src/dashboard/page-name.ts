/** The part of the script that shows one name. */
export const NAME_SCRIPT: string = `
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
    page.replaceChildren(back, el('h2', '', 'title'), el('div', 'Loading …', 'body'))
    if (look?.access === 'operate') page.append(...breaking(name))
    back.focus()
  }
  const answer = await fetch(url({ api: 'name', name }))
  if (!answer.ok || shown !== name) return
  const { title, signs, holders, seen, waiters, nodes } = await answer.json()
  put(page.querySelector('.title'), title)
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
      { method: 'POST', headers: { 'x-holdfast-change': '1' } })
      .then(answer => answer.json()).catch(error => ({ error: 'No answer came, so it may have been broken. ' + error.message }))
    put(result, said.error ?? (said.broken ? 'Taken from its holder. Token ' + said.token + ' is higher than its token.' : 'Not broken: that holder no longer has it'))
  }
  return [el('h2', 'Break'), el('p', 'Takes a lease from the holder that is shown, who may go on working until its next renewal. Type the name:', 'dim'), form, result]
}
`

/** Its style. */
export const NAME_STYLE: string = `
.title { font-size: 1.5rem; overflow-wrap: anywhere }
#one > button { margin-top: 1rem } .body dl { grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)) } .body dd { font-size: .9rem }
`
