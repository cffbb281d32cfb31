import { randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * Access to the page of one `holdfast dashboard`, for a browser that opened the printed address. The answer sets a cookie,
 * so a reload keeps the access until the browser is closed.
 */
export class Session {
  /**
   * The path of the page. A browser sends the cookies of a host to all of its ports. So the cookie has this path, which no
   * other server on this machine can guess.
   */
  readonly #path = `/${randomBytes(12).toString('base64url')}/`
  readonly #secret = randomBytes(24).toString('base64url')

  /** The path and the query of the address that gives access. */
  readonly entrance: string = `${this.#path}?token=${this.#secret}`

  /** The value of `Set-Cookie` for a request for the entrance. */
  cookieFor(target: string | undefined): string | undefined {
    if (!isSame(target ?? '', this.entrance)) return undefined
    return `holdfast=${this.#secret}; Path=${this.#path}; HttpOnly; SameSite=Strict`
  }

  /** Is the request allowed? The token opens only the page. Data needs the cookie and a request by the page itself. */
  admits({ method, headers, url }: Request): boolean {
    const { pathname, search } = new URL(url)
    if (method === 'GET' && isSame(pathname + search, this.entrance)) return true
    if (pathname !== this.#path || !this.#isIn(headers.get('cookie') ?? '')) return false
    return search === '' ? method === 'GET' : headers.get('sec-fetch-site') === 'same-origin'
  }

  /** Is our cookie there? Another server on this machine may have set one of the same name: the browser sends both. */
  #isIn(cookies: string): boolean {
    return cookies.split('; ').some(cookie => isSame(cookie, `holdfast=${this.#secret}`))
  }
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
