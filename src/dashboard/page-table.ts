/** Tables of the page of one name. Below 44rem each row is a card. */
export const TABLE_SCRIPT: string = `
// Columns have a title and a class. A cell has a text, and a remark below it.
function grid(name, columns) {
  const made = el('table', '', 'grid ' + name), head = el('thead'), titles = el('tr')
  titles.append(...columns.map(([title, column]) => el('th', title, column)))
  head.append(titles)
  made.append(head, el('tbody'))
  made.columns = columns
  return made
}
// Rows are kept by their key, so that a text that is selected stays selected.
function rowsOf(made, items, cells) {
  const body = made.lastChild, known = new Map([...body.children].map(row => [row.dataset.key, row]))
  const rows = items.map((item, index) => {
    const [key, ...texts] = cells(item, index)
    const row = known.get(key) ?? rowOf(made.columns, key)
    known.delete(key)
    texts.forEach(([text, remark = ''], at) => { put(row.children[at].firstChild, text); put(row.children[at].lastChild, remark) })
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null)
    return row
  })
  for (const row of known.values()) row.remove()
  made.hidden = rows.length === 0
  return rows
}
function rowOf(columns, key) {
  const row = el('tr')
  row.dataset.key = key
  row.append(...columns.map(([, column]) => {
    const cell = el('td', '', column)
    cell.append(el('span'), el('small'))
    return cell
  }))
  return row
}
`

/** The style of these tables. */
export const TABLE_STYLE: string = `
.grid { width: 100%; border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums }
.grid th { color: var(--dim); font-size: .8125rem; font-weight: 500; text-align: left }
.grid th, .grid td { padding: .375rem 1rem .375rem 0; vertical-align: top; white-space: nowrap }
.grid tbody tr { border-top: 1px solid var(--line) }
.grid .for { text-align: right } .grid .place { width: 2rem; color: var(--dim) }
.grid .who { white-space: normal; overflow-wrap: anywhere }
.grid small { display: block; font-size: .8125rem; color: var(--dim) } .grid small:empty { display: none }
@media (max-width: 44rem) {
  .grid thead { position: absolute; clip-path: inset(50%) }
  .grid tr { display: grid; gap: 0 .5rem; padding: .5rem 0 } .grid td { padding: 0; white-space: normal }
  .grid td:not(.lane):has(:first-child:empty + :empty) { display: none }
}
`
