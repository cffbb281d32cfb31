/** The header that a changing request must have. A form or a simple request of another site cannot set it. */
const CHANGE_HEADER = 'x-holdfast-change'

/** Says why a request is refused, whoever sends it. `undefined`: it is not refused. */
export function refusal(request: Request): string | undefined {
  const { method, headers } = request
  const site = headers.get('sec-fetch-site')
  if (method === 'GET' || method === 'HEAD') return undefined
  if (method !== 'POST') return 'Only GET and POST are answered'
  if (site === null)
    return (
      'A change needs the header Sec-Fetch-Site, which browsers send to HTTPS and localhost only: ' +
      'serve the page over HTTPS'
    )
  if (site !== 'same-origin') return 'A change must come from the page itself (Sec-Fetch-Site: same-origin)'
  if (headers.get(CHANGE_HEADER) === null) return `A change needs the header ${CHANGE_HEADER}`
  return undefined
}

/** Does a browser open or reload a page? A script of the page does not ask for HTML: it reads JSON. */
export function isNavigation({ headers }: Request): boolean {
  return headers.get('sec-fetch-dest') === 'document' || (headers.get('accept') ?? '').includes('text/html')
}

/** The headers of every answer. `sources` are those of the page's own script and style, by their hashes. */
export function guarded(sources: { readonly script: string; readonly style: string }): Record<string, string> {
  return {
    'content-security-policy': [
      "default-src 'none'",
      `script-src '${sources.script}'`,
      `style-src '${sources.style}'`,
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ].join('; '),
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  }
}
