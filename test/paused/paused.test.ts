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

const HOLDER = fileURLToPath(new URL('./holder.ts', import.meta.url))
const flags = process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']

test('after a pause longer than the ttl, the first check reports the loss, and no check succeeds after the next grant', async () => {
  const url = `sqlite:${join(newFolder('paused'), 'leases.db')}`
  const ttl = 2_000
  await using locks = await connect(url)
  const holder = spawn(process.execPath, [...flags, HOLDER, url, 'a', String(ttl)])
  onTestFinished(() => void holder.kill('SIGKILL'))
  const lines = on(createInterface({ input: holder.stdout }), 'line')
  const { value } = await lines.next()
  expect(value).toEqual(['holds'])

  holder.kill('SIGSTOP')
  await until('the holder is paused', () => stateOf(holder.pid ?? 0) === 'T')
  const next = await locks.acquire('a')
  const granted = process.hrtime.bigint()
  holder.kill('SIGCONT')

  const [text] = (await lines.next()).value
  const { last, code, aborted } = JSON.parse(text)
  expect({ code, aborted }).toEqual({ code: 'LEASE_LOST', aborted: true })
  expect(BigInt(last)).toBeLessThan(granted)
  await next.release()
  await once(holder, 'close')
}, 60_000)
