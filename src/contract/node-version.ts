/** Says why this Node cannot run Holdfast. `undefined`: it can. `engines` in package.json only warns. */
export function oldNode(): string | undefined {
  const { node, bun, deno } = process.versions
  if (bun !== undefined || deno !== undefined) return undefined // they only claim to be a version of Node
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 13)) return undefined
  return `Node ${node} is too old: Holdfast needs Node 22.13 or newer`
}

/** Throws an `Error` if this Node cannot run Holdfast. */
export function checkNode(): void {
  const problem = oldNode()
  if (problem !== undefined) throw new Error(problem)
}
