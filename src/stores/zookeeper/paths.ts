/** The paths of a store's nodes. */
export class Paths {
  /** The parents of the names, the outermost first. */
  readonly folders: readonly string[]
  readonly root: string

  /** `chroot` is empty or begins with a slash, and ends with none. */
  constructor(chroot: string, prefix: string) {
    const parts = [...chroot.split('/').slice(1), encode(prefix)]
    this.folders = parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
    this.root = this.folders.at(-1) ?? '/'
  }

  name(name: string): string {
    return `${this.root}/${encode(name)}`
  }

  node(name: string, node: string): string {
    return `${this.name(name)}/${node}`
  }
}

/**
 * A name as one step of a path. ZooKeeper accepts no slashes, `.`, `..`, control characters or characters beyond 16
 * bits, so all but plain characters become %XX of their UTF-8.
 */
export function encode(name: string): string {
  const encoded = encodeURIComponent(name).replace(
    /[!'()*~]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return /^\.\.?$/.test(encoded) ? encoded.replaceAll('.', '%2E') : encoded
}

/** `undefined` for steps that `encode` never produces. */
export function decode(step: string): string | undefined {
  try {
    const name = decodeURIComponent(step)
    return encode(name) === step ? name : undefined
  } catch {
    return undefined
  }
}
