import { createHash } from 'node:crypto'
import { OVERVIEW } from './page-overview.ts'
import { SCRIPT } from './page-script.ts'
import { STYLE } from './page-style.ts'

/** The hashes by which the policy of the page admits its own script and style. */
export const SOURCES: { readonly script: string; readonly style: string } = {
  script: hash(SCRIPT),
  style: hash(STYLE),
}

/** The whole page. It has no data: the script fetches them, and shows them as text only. */
export const PAGE: string =
  html(`<header><h1>Holdfast <span id="store"></span></h1><p id="state" role="status">Connecting …</p></header>
${OVERVIEW}
<script>${SCRIPT}</script>`)

/** What a browser shows without access. */
export const NO_ACCESS_PAGE: string = html(`<header><h1>Holdfast</h1></header>
<main>
<div id="verdict" class="bad"><p id="say">You have no access</p></div>
<ul>
<li>If you started <code>holdfast dashboard</code>: open the address that it printed, with its token. It sets a cookie, so
the browser must accept cookies.</li>
<li>If the page is part of a service: the service refused you. Sign in there, then reload.</li>
</ul>
</main>`)

function html(body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Holdfast</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`
}

function hash(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
