import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BUILD } from '../holdfast.ts'
import { rough, type Scenario, type Trial } from '../scenario.ts'
import { median } from '../statistics.ts'
import type { Values } from '../worker.ts'

const run = promisify(execFile)
const SOURCE = join(import.meta.dirname, '../../src')

/** What a variant's number stands for: the arguments of Node, once a folder is known. */
const programs: readonly { readonly name: string; arguments(folder: string): string[] }[] = [
  { name: "import 'holdfast', as it is published", arguments: () => importing(join(BUILD, 'index.js')) },
  { name: "import 'holdfast', from its sources", arguments: () => importing(join(SOURCE, 'index.ts')) },
  {
    name: 'holdfast run NAME -- true, over SQLite, as it is published',
    arguments: folder => [join(BUILD, 'cli/main.js'), ...command(folder)],
  },
  {
    name: 'holdfast run NAME -- true, over SQLite, from its sources',
    arguments: folder => [join(SOURCE, 'cli/main.ts'), ...command(folder)],
  },
]

export const scenario: Scenario = {
  title: 'Cold start',
  about:
    'Each runs in a new process, alternating with a bare Node that runs an empty program. Medians. The file of the SQLite ' +
    'store already exists.',
  rounds: 3,
  variants: isQuick =>
    programs
      .map(({ name }, program) => ({ name, settings: { program, times: isQuick ? 2 : 15 } }))
      .filter(({ name }) => !isQuick || name.endsWith('as it is published')),
  takesPart: peer => peer.label === 'Holdfast',
  async measure({ place, settings }: Trial): Promise<Values> {
    const { program = 0, times = 0 } = settings
    const args = programs[program]?.arguments(place.folder) ?? []
    const [bare, own, inside]: number[][] = [[], [], []]
    await timed(args) // what is on the disk is in memory from here on
    for (let time = 0; time < times; time += 1) {
      bare?.push((await timed(['--input-type=module', '--eval', ''])).elapsed)
      const { elapsed, output } = await timed(args)
      own?.push(elapsed)
      if (output) inside?.push(Number(output))
    }
    const [all, least] = [median(own ?? []), median(bare ?? [])]
    return { all, over: all - least, inside: inside?.length ? median(inside) : undefined }
  },
  columns: [
    { title: 'ms over bare Node', value: 'over', format: rough },
    { title: 'ms in all', value: 'all', format: rough },
    { title: 'ms of the import itself', value: 'inside', format: rough },
  ],
}

function importing(path: string): string[] {
  const program = `const from = performance.now()
    await import(${JSON.stringify(path)})
    process.stdout.write(String(performance.now() - from))`
  return ['--input-type=module', '--eval', program]
}

function command(folder: string): string[] {
  return ['run', '--store', `sqlite:${join(folder, 'cold.db')}`, 'cold', '-q', '--', 'true']
}

async function timed(args: readonly string[]): Promise<{ elapsed: number; output: string }> {
  const from = performance.now()
  const { stdout } = await run(process.execPath, [...args])
  return { elapsed: performance.now() - from, output: stdout }
}
