/** The part of the script that breaks a lease. */
export const BREAK_SCRIPT: string = `
function breaking(name) {
  const made = el('section', '', 'break'), form = el('form'), about = el('p', '', 'dim'), said = el('p')
  const which = el('select'), typed = el('input'), button = el('button', 'Break', 'danger')
  const choice = el('label', 'Lease '), label = el('label', 'Type '), title = el('b'), verb = el('span'), heading = el('h2')
  said.setAttribute('role', 'status')
  typed.autocomplete = typed.autocapitalize = 'off'
  typed.spellcheck = false
  choice.append(which)
  label.append(title, verb, typed)
  form.append(heading, about, choice, label, button)
  made.append(form, said)
  let one, leases = [], isAsking = false
  const chosen = () => one.use === null ? leases[0] : leases.find(({ token }) => token === which.value)
  const isAll = () => one.use !== null && which.value === 'all'
  function check() {
    const lease = chosen()
    put(button, one.isMarker ? 'Remove the marker' : 'Break' + (one.use === null ? '' : isAll() ? ' all ' + leases.length + ' leases' : lease ? ' ' + lease.slots : ''))
    button.disabled = isAsking || typed.value !== one.title || !(lease || isAll())
  }
  const say = (text, isBad) => { put(said, text); said.className = isBad ? 'bad' : '' }
  typed.oninput = which.onchange = () => { say(''); check() }
  form.onsubmit = async event => {
    event.preventDefault()
    const lease = chosen()
    // Those on the screen: who acquires later has a higher token.
    const of = isAll() ? 'all ' + leases.map(({ token }) => BigInt(token)).reduce((a, b) => a > b ? a : b) : lease.token
    isAsking = true
    check()
    const from = isAll() ? 'all holders' : lease.owner
    const { error, token } = await fetch(url({ api: 'break', name, typed: typed.value, token: of }),
      { method: 'POST', headers: { 'x-holdfast-change': '1' }, signal: AbortSignal.timeout(20000) })
      .then(answer => answer.json()).catch(({ message }) => ({ error: 'No answer came, so it may have been broken. ' + message }))
    isAsking = false
    typed.value = ''
    say(error ?? (one.isMarker ? 'The marker is removed: the next run is not skipped.'
      : 'Taken from ' + from + '. Token ' + token + ' is higher than the one it had.'), error !== undefined)
    check()
  }
  made.show = now => {
    const before = leases
    one = now
    leases = one.leases.filter(({ to }) => to === null)
    form.hidden = leases.length === 0
    put(title, one.title)
    put(verb, one.isMarker ? ' to remove its marker' : ' to break it')
    put(heading, one.isMarker ? 'Remove the marker' : 'Break')
    put(about, one.isMarker ? 'Then the next run is not skipped.'
      : 'The holder may go on working until its next renewal. A resource that checks tokens refuses it once it has seen a higher token.')
    choice.hidden = one.use === null
    offer(which, one.use === null ? [] : [['', 'Choose'], ...leases.map(({ token, slots, owner }) => [token, slots + ' · ' + owner]), ['all', 'all ' + leases.length]])
    // A name that was typed for one holder must not break the lease of the next one.
    if (typed.value !== '' && one.use === null && before[0]?.token !== leases[0]?.token) {
      typed.value = ''
      say(leases.length === 0 ? 'It is free now.' : 'The holder has changed. Type the name again.', true)
    }
    check()
  }
  return made
}
// The choice is kept as long as its lease is held.
function offer(select, texts) {
  const key = JSON.stringify(texts)
  if (select.dataset.key === key) return
  const { value } = select
  select.dataset.key = key
  select.replaceChildren(...texts.map(([of, text]) => new Option(text, of)))
  select.value = texts.some(([of]) => of === value) ? value : ''
}
`

/** The style of that part. */
export const BREAK_STYLE: string = `
.break form { border: 1px solid var(--danger); border-radius: .5rem; padding: .75rem 1rem 1rem; margin-top: 2rem; max-width: 40rem }
.break h2 { margin: 0; color: var(--bad) } .break label { display: block; margin: .75rem 0 } .break label[hidden] { display: none }
.break b { unicode-bidi: isolate; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: 0 .25em }
.break input, .break select { display: block; width: 100%; margin-top: .25rem }
.danger { width: 100%; font-weight: 600; background: var(--danger); border-color: var(--danger); color: #fff; cursor: pointer }
.danger:disabled { background: none; color: var(--bad); border-style: dashed; cursor: not-allowed }
`
