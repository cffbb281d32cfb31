/** The lines `name:value` of `INFO`. */
export function fields(text: string): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(/^(\w+):(.*?)\r?$/gm), ([, name, value]) => [name, value]))
}
