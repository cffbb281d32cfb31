/** Is a column of bytes equal to the one before? Then only one of them needs to be tried. */
export function repeats(bytes: Uint8Array, at: number, size: number): boolean {
  for (let index = at; index < at + size; index += 1) if (bytes[index] !== bytes[index - size]) return false
  return true
}

/** Sorts columns of bytes. */
export function sortColumns(bytes: Uint8Array, start: number, columns: number, size: number): void {
  for (let sorted = 1; sorted < columns; sorted += 1)
    for (let at = start + sorted * size; at > start && isAfter(bytes, at - size, at, size); at -= size)
      for (let index = at; index < at + size; index += 1) {
        const byte = bytes[index] ?? 0
        bytes[index] = bytes[index - size] ?? 0
        bytes[index - size] = byte
      }
}

function isAfter(bytes: Uint8Array, first: number, second: number, size: number): boolean {
  for (let index = 0; index < size; index += 1) {
    const difference = (bytes[first + index] ?? 0) - (bytes[second + index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
