import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sourceOf } from './entries.ts'
import { between, plain } from './members.ts'

const ROOT = join(import.meta.dirname, '..')

/** docs/reference/exports.md, with the values that an entry point exports and what they are, and its types. Each needs a doc comment. */
export function exportsPage(page: string): string {
  return ['holdfast', 'holdfast/store'].reduce((text, entry) => between(text, entry, tableOf(entry)), page)
}

function tableOf(entry: string): string {
  const rows = namesOf(join(ROOT, sourceOf(entry) ?? '')).map(({ name, isType, path }) => {
    const comment = commentOf(name, readFileSync(path, 'utf8'))
    if (!comment) throw new Error(`${name} of ${entry} has no doc comment in ${path}`)
    return { isType, name, line: `- \`${name}\`: ${comment}` }
  })
  const [values, types] = [false, true].map(wanted => rows.filter(({ isType }) => isType === wanted))
  const lines = values?.map(({ line }) => line).join('\n')
  return `${lines}\n\nTypes: ${types?.map(({ name }) => `\`${name}\``).join(', ')}.`
}

/** The names that a file exports again, with their sources, in the order of the alphabet. */
function namesOf(file: string): { name: string; isType: boolean; path: string }[] {
  const statements = readFileSync(file, 'utf8').matchAll(/^export (type )?\{([^}]*)\} from '([^']*)'/gm)
  const names = Array.from(statements).flatMap(([, type, list = '', from = '']) =>
    list
      .split(',')
      .map(text => text.trim())
      .filter(text => text !== '')
      .map(text => ({
        name: text.replace(/^type /, ''),
        isType: type !== undefined || text.startsWith('type '),
        path: join(dirname(file), from),
      })),
  )
  return names.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The first sentence of the doc comment of a name. `undefined`: there is none. */
function commentOf(name: string, source: string): string | undefined {
  const declared = `export (?:declare |abstract |async )?(?:interface|type|class|function|const) ${name}\\b`
  const [, comment] = new RegExp(`/\\*\\*((?:(?!\\*/).)*)\\*/\\n${declared}`, 's').exec(source) ?? []
  return (
    comment &&
    plain(comment)
      .replace(/ ?@(default|throws|param).*/, '')
      .split(/(?<=[.:]) (?=[A-Z`-])|:$/)[0]
      ?.replace(/:$/, '.')
  )
}
