import { checkText, invalid } from '../../contract/check.ts'

/** Throws `INVALID_ARGUMENT` unless it is 1 to 255 bytes of text. */
export function checkPrefix(prefix: unknown): asserts prefix is string {
  checkText(prefix, 'the prefix')
  if (prefix === '') throw invalid('the prefix is empty: give 1 to 255 bytes of text, or leave it out')
}

/** Decodes a part of the URL of `store`. No message repeats it, because it may be a password. */
export function decodePart(part: string, store: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw invalid(`the URL of ${store} has a % that encodes nothing: write it as %25`)
  }
}

/** The host of a URL. An IPv6 address is returned without its brackets. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Parses the options in the URL of `store`, such as `an etcd store`. Each may be given once. No message repeats a value, or
 * a name that may be the rest of a password with an unencoded question mark.
 */
export function optionsOf(query: string, known: Iterable<string>, store: string): URLSearchParams {
  const options = new URLSearchParams(query)
  const names = [...known]
  for (const name of options.keys()) {
    if (!names.includes(name)) {
      const what = query.includes('@') ? 'no such option' : `no option ${JSON.stringify(name)}`
      throw invalid(`the URL of ${store} has ${what}, only ${names.join(', ')}`)
    }
    if (options.getAll(name).length > 1) throw invalid(`${name} is given twice in the URL of ${store}`)
  }
  return options
}

/**
 * Refuses the hosts of a URL if they may be a user and the beginning of a password, because an @ follows. Messages about
 * hosts would repeat them.
 */
export function checkHosts(hosts: string, rest: string, store: string): void {
  const isHost = (host: string): boolean => /^(\[[^\]]*\]|[^:]*)(:\d*)?$/.test(host)
  if (rest.includes('@') && !hosts.split(',').every(isHost))
    throw invalid(`the URL of ${store} is invalid: percent-encode special characters in a password, such as ? as %3F`)
}
