import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { launch, NODE } from '../cli/test/holdfast.ts'

const run = promisify(execFile)
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Code that makes this Node claim to be another one, for --import. */
function claiming(versions: Record<string, string>): string {
  const value = JSON.stringify({ ...process.versions, ...versions })
  return `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${encodeURIComponent(value)} })`
}

async function importing(entry: string, versions: Record<string, string>): Promise<string> {
  const code = `import(${JSON.stringify(at(entry))}).then(() => 'imported', String).then(console.log)`
  const [node = '', ...flags] = NODE
  const { stdout } = await run(node, [...flags, '--import', claiming(versions), '-e', code])
  return stdout.trim()
}

describe.each(['../index.ts', '../stores/redis/index.ts', '../fencing/http/index.ts', '../observe/prometheus.ts'])(
  'F19: %s',
  entry => {
    test.each(['20.20.2', '22.12.0'])('cannot be imported by Node %s, and says so in one sentence', async node => {
      const message = `Error: Node ${node} is too old: Holdfast needs Node 22.13 or newer`
      expect(await importing(entry, { node })).toBe(message)
    })

    test('can be imported by Node 22.13, and by other runtimes', async () => {
      expect(await importing(entry, { node: '22.13.0' })).toBe('imported')
      expect(await importing(entry, { node: '20.11.1', deno: '2.0.0' })).toBe('imported')
    })
  },
)

test('F19: the command line reports an old Node in one line, and ends with 69', async () => {
  const [node = '', ...flags] = NODE
  const command = [node, ...flags, '--import', claiming({ node: '20.20.2' }), at('../cli/main.ts'), 'ls']
  const { code, out, err } = await launch(command).ended
  const message = 'holdfast: Node 20.20.2 is too old: Holdfast needs Node 22.13 or newer\n'
  expect({ code, out, err }).toEqual({ code: 69, out: '', err: message })
})
