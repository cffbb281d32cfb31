import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './script-node.ts'

const PAGES: readonly string[] = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT }).sort()]

/** A block of TypeScript in the documentation, as a program. */
interface Sample {
  readonly title: string
  readonly file: string
  readonly text: string
  readonly needsServer: boolean
}

/** Files that import each other, and packages that only `./script/test --full` installs. Their own tests run them. */
const RECIPE = /<!-- example: examples\/integrations\/[\w.-]+ -->\n```ts\n.*?^```\n/gms

/** Blocks without imports continue the first one of the README. */
export function samplesOfPages(): Sample[] {
  const [first = ''] = blocks(read('README.md'), 'ts')
  const start = first.slice(0, first.indexOf('\n\nawait locks.using'))
  return PAGES.flatMap(page =>
    blocks(read(page).replaceAll(RECIPE, ''), 'ts').map((block, index) => {
      const program = /^import /m.test(block) ? block : `${start}\n${block}`
      return {
        title: `TypeScript block ${index + 1} of ${page}`,
        file: `${page.replaceAll(/\W/g, '-')}-${index + 1}.ts`,
        text: `${hurried(program)}\n${STAND_INS}`,
        needsServer: /redis|valkey|postgres|mysql|azure|nats|\bs3\b|https:|from 'vitest'/i.test(block),
      }
    }),
  )
}

/** The same program with shorter work: readers need time to kill it, tests do not. */
export function hurried(program: string): string {
  return program.replaceAll(/\bsleep\((\d+)_000\b/g, 'sleep($1 * 10')
}

/** What the samples take for granted. */
const STAND_INS = `
async function sendReports(signal: AbortSignal): Promise<number> {
  signal.throwIfAborted()
  return 3
}
export {}`

export function blocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code]) => code as string,
  )
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
