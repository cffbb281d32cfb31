import { invalid, show } from '../../contract/check.ts'
import { checkPrefix } from '../url/options.ts'

/** The paths of a store's nodes. */
export class Paths {
  /** The parents of the names, beginning with the outermost. */
  readonly folders: readonly string[]
  /** The parents above the chroot, in which other applications may have nodes. */
  readonly shared: readonly string[]
  readonly root: string

  /** `chroot` is empty or begins with a slash, and ends with none. */
  constructor(chroot: string, prefix: string) {
    const parts = [...chroot.split('/').slice(1), encode(prefix)]
    this.folders = parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
    this.shared = this.folders.slice(0, -2)
    this.root = this.folders.at(-1) ?? '/'
  }

  name(name: string): string {
    return `${this.root}/${encode(name)}`
  }

  node(name: string, node: string): string {
    return `${this.name(name)}/${node}`
  }
}

/** The paths for the options of a store, or its URL. Throws INVALID_ARGUMENT. */
export function pathsOf({ chroot = '', prefix = 'holdfast' }: { chroot?: unknown; prefix?: unknown }): Paths {
  checkPrefix(prefix)
  return new Paths(chrootOf(chroot), prefix)
}

/**
 * Encodes a name as one step of a path. ZooKeeper accepts no slashes, `.`, `..`, control characters or characters beyond 16
 * bits. So all but plain characters become the %XX of their UTF-8 bytes.
 */
export function encode(name: string): string {
  const encoded = encodeURIComponent(name).replace(
    /[!'()*~]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return /^\.\.?$/.test(encoded) ? encoded.replaceAll('.', '%2E') : encoded
}

/** Decodes a step of a path. `undefined`: `encode` never produces this step. */
export function decode(step: string): string | undefined {
  try {
    const name = decodeURIComponent(step)
    return encode(name) === step ? name : undefined
  } catch {
    return undefined
  }
}

function chrootOf(chroot: unknown): string {
  if (chroot === '' || chroot === '/') return ''
  if (typeof chroot === 'string' && /^(\/[^/\p{Cc}\p{Cs}\p{Co}]+)+$/u.test(chroot) && !/\/\.{1,2}(\/|$)/.test(chroot))
    return chroot
  throw invalid(`the chroot must be a path such as /apps/billing, without a slash at its end, not ${show(chroot)}`)
}
