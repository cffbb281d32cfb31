import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

/** The checkout. Astro bundles this file, so its own place says nothing: ./script/site starts it in `site`. */
export const ROOT = resolve('..')
/** Where TypeDoc writes. */
const API = 'site/.api/'

/** The pages: the path of each file from ROOT, and its address on the site. The README is the first page. */
export const PAGES: ReadonlyMap<string, string> = new Map(
  globSync(['*.md', '{docs,lab,drop-ins}/**/*.md', `${API}**/*.md`], {
    cwd: ROOT,
    exclude: ['**/node_modules'],
  })
    .sort()
    .map(path => [path, addressOf(path)]),
)

function addressOf(path: string): string {
  if (path === 'README.md') return 'index'
  if (path === 'docs/README.md') return 'pages'
  return path
    .replace(API, 'api/')
    .replace(/^docs\//, '')
    .replace(/(\/README)?\.md$/, '')
    .replaceAll('_', '-')
    .toLowerCase()
}

/** Where files are that are no pages: the `repository` of package.json, or undefined as long as there is none. */
export const REPOSITORY: string | undefined = JSON.parse(read('package.json'))
  .repository?.url.replace(/^git\+/, '')
  .replace(/\.git$/, '')

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The title of a page, and its text below that. */
export function parts(text: string): { title: string; body: string } {
  const [heading = '', title = ''] = /^# (.*)\n/.exec(text) ?? []
  if (!title) throw new Error(`a page begins with its title, not with: ${text.slice(0, 80)}`)
  return { title: title.replaceAll(/[`\\]/g, ''), body: text.slice(heading.length) }
}

/** What a link of the file leads to on the site. Undefined if it leads out of the site and there is no repository. */
export function linkOf(file: string, url: string): string | undefined {
  if (/^([a-z]+:|#)/.test(url)) return url
  const [target = '', fragment] = url.split('#')
  const path = relative(ROOT, resolve(ROOT, file, '..', decodeURI(target)))
  const address = PAGES.get(path)
  const hash = fragment ? `#${fragment}` : ''
  if (address !== undefined) return `${address === 'index' ? '/' : `/${address}/`}${hash}`
  if (!existsSync(resolve(ROOT, path))) throw new Error(`${file} has a link to ${url}, which does not exist`)
  return REPOSITORY && `${REPOSITORY}/blob/main/${path}${hash}`
}

export interface Section {
  readonly label: string
  readonly pages: readonly { readonly label: string; readonly address: string }[]
}

/** The headings of docs/README.md with their lists, then what is at the root of the checkout, then the API. */
export function sections(): Section[] {
  const listed = read('docs/README.md').split(/^## /m).slice(1).map(section)
  const project = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'CODE_OF_CONDUCT.md']
  const packages = [...PAGES.keys()].filter(path => /^(lab|drop-ins)\//.test(path))
  const api = [...PAGES.keys()].filter(path => path.startsWith(API))
  const first = { label: 'Start', pages: [{ label: 'Overview', address: 'index' }, pageOf('docs/start.md')] }
  const sections = [first, ...listed, { label: 'Project', pages: [...project, ...packages].map(pageOf) }]
  return api.length === 0 ? sections : [...sections, { label: 'API', pages: api.map(pageOf) }]
}

function section(text: string): Section {
  const links = text.matchAll(/^- \[(.*?)\]\((.*?\.md)\)/gm)
  const pages = Array.from(links, ([, label = '', url = '']) => ({ ...pageOf(join('docs', url)), label }))
  return { label: text.slice(0, text.indexOf('\n')), pages }
}

function pageOf(path: string): { label: string; address: string } {
  const address = PAGES.get(path)
  if (address === undefined) throw new Error(`there is no page ${path}`)
  return { label: parts(read(path)).title, address }
}
