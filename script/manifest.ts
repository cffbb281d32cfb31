import { ENTRIES } from './entries.ts'

/** The text of package.json, with `exports` and `typesVersions` for all entry points. */
export function manifestOf(text: string): string {
  const manifest = JSON.parse(text) as object
  const names = Object.keys(ENTRIES)
  const exports = {
    ...Object.fromEntries(names.map(name => [name === 'index' ? '.' : `./${name}`, conditions(name)])),
    './package.json': './package.json',
  }
  // For TypeScript with `moduleResolution: node10`, which ignores `exports`.
  const types = names.filter(name => name !== 'index').map(name => [name, [`./dist/${name}.d.cts`]])
  const typesVersions = { '*': Object.fromEntries(types) }
  return `${JSON.stringify({ ...manifest, exports, typesVersions }, null, 2)}\n`
}

function conditions(name: string): object {
  const path = `./dist/${name}`
  return {
    import: { types: `${path}.d.ts`, default: `${path}.js` },
    require: { types: `${path}.d.cts`, default: `${path}.cjs` },
  }
}
