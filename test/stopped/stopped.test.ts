import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { stateOf } from '../../lab/servers/process.ts'
import { until } from '../../lab/servers/until.ts'
import { connect } from '../../src/index.ts'

const LOOKING = fileURLToPath(new URL('./looking.ts', import.meta.url))
const flags = process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']

test('a process that was stopped past its ttl is told so by its first look, not after another holds', async () => {
  const url = `sqlite:${join(newFolder('stopped'), 'leases.db')}`
  const ttl = 2_000
  await using locks = await connect(url)
  const looking = spawn(process.execPath, [...flags, LOOKING, url, 'a', String(ttl)])
  onTestFinished(() => void looking.kill('SIGKILL'))
  const lines = on(createInterface({ input: looking.stdout }), 'line')
  const { value } = await lines.next()
  expect(value).toEqual(['holds'])

  looking.kill('SIGSTOP')
  await until('it stands still', () => stateOf(looking.pid ?? 0) === 'T')
  const next = await locks.acquire('a')
  const passedOn = process.hrtime.bigint()
  looking.kill('SIGCONT')

  const [text] = (await lines.next()).value
  const { last, code, aborted } = JSON.parse(text)
  expect({ code, aborted }).toEqual({ code: 'LEASE_LOST', aborted: true })
  expect(BigInt(last)).toBeLessThan(passedOn)
  await next.release()
  await once(looking, 'close')
}, 60_000)
