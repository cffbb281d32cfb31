/** Safe HTML: templates escape their values, unless these are HTML themselves. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | bigint | false | undefined | readonly Content[]

/** A template of HTML. Lists are joined; `false` and `undefined` are nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(escaped)))
}

function escaped(value: Content): string {
  if (typeof value === 'object') return value instanceof Html ? value.text : value.map(escaped).join('')
  if (value === false || value === undefined) return ''
  return String(value).replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`)
}
