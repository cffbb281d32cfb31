import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { ENTRIES } from './entries.ts'

const ROOT = join(import.meta.dirname, '..')
const EXAMPLE = /(<!-- example: (examples\/[\w./-]+) -->\n)(?:```[tj]s\n.*?^```\n)?/gms
const HEADER = /^\/\*\*.*?\*\/\n/s

/** A page with its examples as they are in their files. A comment in the page, `example: PATH`, names each. */
export function withExamples(page: string): string {
  return page.replace(EXAMPLE, (_, mark: string, path: string) => {
    const language = path.endsWith('.ts') ? 'ts' : 'js'
    return `${mark}\`\`\`${language}\n${asInProjects(readFileSync(join(ROOT, path), 'utf8'), path)}\`\`\`\n`
  })
}

/** A program of this checkout as users write it: it imports the package. */
function asInProjects(text: string, path: string): string {
  return text
    .replace(HEADER, '')
    .replaceAll(/^(.*\bfrom) '(\.[^']+)'.*$/gm, (line: string, before: string, source: string) => {
      const target = relative(ROOT, join(ROOT, path, '..', source))
      const [entry] = Object.entries(ENTRIES).find(([, file]) => file === target) ?? []
      if (entry === undefined) return line
      return `${before} '${entry === 'index' ? 'holdfast' : `holdfast/${entry}`}'`
    })
}
