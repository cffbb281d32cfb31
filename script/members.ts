/** A member of an interface, with its doc comment as text. */
export interface Member {
  readonly name: string
  readonly type: string
  readonly text: string
  readonly default: string
}

/** The members in the body of an interface. Throws if one has no doc comment. */
export function membersIn(body: string, indent: number, where: string): Member[] {
  const space = ' '.repeat(indent)
  const pattern = `(?:^${space}/\\*\\*((?:(?!\\*/).)*)\\*/\\n)?^${space}readonly (\\w+)(\\??): ([^\\n]*)$`
  return [...body.matchAll(new RegExp(pattern, 'gms'))].map(([, comment, name = '', optional, type = '']) => {
    if (comment === undefined) throw new Error(`${where}.${name} has no doc comment`)
    const [text = '', fallback] = plain(comment).split(/ ?@default /)
    const none = optional ? 'none' : 'required'
    return { name, type: typeOf(type, optional !== ''), text, default: fallback ?? none }
  })
}

/** The text of a doc comment. */
export function plain(comment: string): string {
  return comment
    .replaceAll(/^\s*\*? ?/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The page with another text between its comments `NAME: begin` and `NAME: end`. */
export function between(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`]
  const [before, after] = [page.indexOf(begin), page.indexOf(end)]
  if (before < 0 || after < 0) throw new Error(`the page of ${name} lacks the comments around its tables`)
  return `${page.slice(0, before + begin.length)}\n\n${text}\n\n${page.slice(after)}`
}

function typeOf(type: string, isOptional: boolean): string {
  const known = (isOptional ? type.replace(/ \| undefined$/, '') : type).replace(/ \{$/, '')
  return `\`${known}\``
}
