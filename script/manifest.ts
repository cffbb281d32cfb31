import { dirname, join } from 'node:path/posix'
import { ENTRIES } from './entries.ts'

interface Manifest {
  readonly version?: string
  readonly repository?: { readonly type: string; readonly url: string; readonly directory?: string }
}

const PAGES = ['docs/**/*.md', 'dashboards/alerts.yml', 'dashboards/grafana.json']

/** The text of package.json, with `exports` and `typesVersions` for all entry points, the files, and the addresses. */
export function manifestOf(text: string): string {
  const manifest = JSON.parse(text) as Manifest
  const names = Object.keys(ENTRIES)
  const exports = {
    ...Object.fromEntries(names.map(name => [name === 'index' ? '.' : `./${name}`, conditions(name)])),
    './package.json': './package.json',
  }
  // For TypeScript with `moduleResolution: node10`, which ignores `exports`.
  const types = names.filter(name => name !== 'index').map(name => [name, [`./dist/${name}.d.cts`]])
  const typesVersions = { '*': Object.fromEntries(types) }
  // Pages are shipped until there is an address to link to.
  const files = ['dist', ...(manifest.repository ? [] : PAGES), 'CHANGELOG.md']
  return `${JSON.stringify({ ...manifest, ...addressesOf(manifest), files, exports, typesVersions }, null, 2)}\n`
}

/** The text of the package.json of a package in `directory`, with the addresses of package.json. */
export function memberManifestOf(text: string, root: string, directory: string): string {
  const { repository } = JSON.parse(root) as Manifest
  const addresses = repository ? addressesOf({ repository: { ...repository, directory } }) : {}
  return `${JSON.stringify({ ...(JSON.parse(text) as object), ...addresses }, null, 2)}\n`
}

/** The Markdown file `path` for the package: links to files that are not `isShipped` are absolute. */
export function npmPage(path: string, page: string, root: string, isShipped: (path: string) => boolean): string {
  const { repository, version } = JSON.parse(root) as Manifest
  if (!repository) throw new Error('package.json has no repository: fill it first')
  return page.replaceAll(/(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)#]+)(#[^)]*)?\)/g, (link, image, text, to, part = '') => {
    const target = join(dirname(path), to)
    const kind = image ? 'raw' : 'blob' // a page of a picture is no picture
    return isShipped(target) ? link : `${image}[${text}](${baseOf(repository)}/${kind}/v${version}/${target}${part})`
  })
}

/** Code of the package that names pages, such as `docs/stores/redis.md`: once there is an address, as links. */
export function linkedPages(code: string, root: string): string {
  const { repository, version } = JSON.parse(root) as Manifest
  return repository ? code.replaceAll(/\bdocs\/[\w/-]+\.md/g, `${baseOf(repository)}/blob/v${version}/$&`) : code
}

/** Everything follows from `repository`, which a maintainer fills. */
function addressesOf({ repository }: Manifest): object {
  if (!repository) return {}
  const base = baseOf(repository)
  return { repository, homepage: `${base}#readme`, bugs: { url: `${base}/issues` } }
}

function baseOf({ url }: { readonly url: string }): string {
  return url.replace(/^git\+/, '').replace(/\.git$/, '')
}

function conditions(name: string): object {
  const path = `./dist/${name}`
  return {
    import: { types: `${path}.d.ts`, default: `${path}.js` },
    require: { types: `${path}.d.cts`, default: `${path}.cjs` },
  }
}
