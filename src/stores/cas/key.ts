/** A key of a name: letters, digits, `-` and `_` stay, each other byte becomes `=` and two digits. Prefixes stay prefixes. */
export function keyOf(name: string): string {
  return Buffer.from(name)
    .toString('latin1')
    .replaceAll(/[^\w-]/g, byte => {
      return `=${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
    })
}

/** The name of a key. `undefined`: it is no key of ours. */
export function nameOf(key: string): string | undefined {
  const bytes = key.replaceAll(/=([\dA-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
  const name = Buffer.from(bytes, 'latin1').toString()
  return keyOf(name) === key ? name : undefined
}
