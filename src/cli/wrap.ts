import { wrappedWords } from './show/text.ts'

/** The lines of a paragraph, of at most `width` columns with their indent. */
export function wrap(text: string, indent = 0, width = 100): string[] {
  return wrappedWords(text, width - indent).map(line => ' '.repeat(indent) + line)
}
