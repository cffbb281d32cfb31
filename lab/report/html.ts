/** Safe HTML: templates escape their values, unless these are HTML themselves. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A template of HTML. Lists are joined; `false` and `undefined` are nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(escaped)))
}

function escaped(value: unknown): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(escaped).join('')
  if (value === false || value === undefined) return ''
  return String(value).replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`)
}
