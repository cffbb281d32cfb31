/** HTML that is safe: what is put into it is escaped, unless it is HTML itself. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A template of HTML. Lists are joined. */
export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): Html {
  return new Html(
    strings.map((string, index) => string + (index < values.length ? escaped(values[index]) : '')).join(''),
  )
}

function escaped(value: unknown): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(escaped).join('')
  return String(value).replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`)
}
