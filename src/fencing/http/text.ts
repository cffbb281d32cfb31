// Text in a header, by RFC 9651: printable ASCII is a string (3.3.3). Other text is a display string (3.3.8), in which the
// bytes of UTF-8 are written as %ff.

/** Writes any text as the value of a header. */
export function writeText(text: string): string {
  if (/^[ -~]*$/.test(text)) return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
  const bytes = Array.from(Buffer.from(text), byte => {
    const character = String.fromCharCode(byte)
    return /[ !#$&-~]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  })
  return `%"${bytes.join('')}"`
}

/** Parses the text of a header. `undefined` unless the header is exactly one string or display string. */
export function parseText(value: string): string | undefined {
  const string = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(value)?.[1]
  if (string !== undefined) return string.replaceAll(/\\(.)/g, '$1')
  const display = /^%"((?:[ !#$&-~]|%[0-9a-f]{2})*)"$/.exec(value)?.[1]
  if (display === undefined) return undefined
  const bytes = Buffer.from(
    display.replaceAll(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
