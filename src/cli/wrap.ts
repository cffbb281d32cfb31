/** The lines of a paragraph, indented, of at most `width` characters unless a word is longer. */
export function wrap(text: string, indent = 0, width = 100): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && indent + last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.map(line => ' '.repeat(indent) + line)
}
