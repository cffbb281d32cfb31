/** A number with its noun: `1 mark`, `2 marks`, `1,200 names`. `plural` is needed if it is not the noun with an s. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`
}
