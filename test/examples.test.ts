import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT, scriptNode, UNCACHED } from './script-node.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const outputs: Readonly<Record<string, RegExp>> = {
  'quick-start.ts': /^holding reports with token \d{16}\n3 reports sent\n$/,
  'once-per-request.ts': /^the provider charges 900 cents for order-\d+\n3 requests, 1 receipt\n$/,
  'api-slots.ts': /^10 addresses, never more than 3 requests: true\n$/,
  'cron.ts': /^(?!.*runs.*runs)(?=.*runs)((replica-\d runs daily-report|not run: (held|ran) by replica-\d)\n){3}$/s,
  'leader.ts': /^replica-1 leads\n(order [1-3] by replica-1\n){3}replica-2 leads\n(order [4-6] by replica-2\n){3}$/,
  'migration.ts': /^(replica-\d): create table .*\n\1: alter table .*\n1 of 3 replicas migrated\n$/,
  'kubernetes.ts': /^leads with token \d{16}\nthe work has ended\n$/,
  'long-job.ts':
    /^(invoice [1-3] by version-1\n){3}(invoice [4-6] by version-2\n){3}finished: version-1 false, version-2 true\n$/,
  'serverless.ts': /^answers: (200,409|409,200)\n$/,
  'fenced-ledger.ts': /^the next holder has booked the rent\n.* STALE_TOKEN.* true\nthe balance is -900\n$/,
  'fenced-http.ts': /^the next client gets 204\nthe first client gets 412\n.* STALE_TOKEN\na hammer costs 900\n$/,
  'fenced-export.ts': /^the next holder .*\n.* refused: STALE_TOKEN\nitem,cents\nhammer,900\nsaw,2400\n\n$/,
  'transfer.ts': /^10 transfers were tried\nthere are 200 in both accounts, and none is overdrawn: true\n$/,
  'testing.ts': /\bpass 4\n.*\bfail 0\n/s,
}

test.each(Object.entries(outputs))('the example %s runs', async (file, output) => {
  const { code, stdout, stderr } = await scriptNode([join(ROOT, 'examples', file)], {
    folder,
    env: { HOLDFAST_STORE: 'sqlite:leases.db' },
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(output)
})

test('the example await-using.ts runs when it is compiled for older versions of Node', async () => {
  // Inside the checkout, where packages are found. git and all tools ignore .tools.
  mkdirSync(join(ROOT, '.tools'), { recursive: true })
  const compiled = mkdtempSync(join(ROOT, '.tools/await-using-'))
  try {
    const options = ['--ignoreConfig', '--target', 'es2022', '--lib', 'es2024,esnext.disposable', '--types', 'node']
    options.push('--module', 'nodenext', '--rewriteRelativeImportExtensions', '--skipLibCheck')
    options.push('--rootDir', ROOT, '--outDir', compiled, join(ROOT, 'examples/await-using.ts'))
    await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), options)
    const { code, stdout, stderr } = await scriptNode([join(compiled, 'examples/await-using.js')], {
      folder,
      env: UNCACHED,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = [/holding reports with token \d{16}/, /tryAcquire resolves to undefined/, /released at the end/, /^$/]
    expect(stdout.split('\n')).toEqual(lines.map(line => expect.stringMatching(line)))
  } finally {
    rmSync(compiled, { recursive: true, force: true })
  }
}, 30_000)

// src/stores/redis/test/example.test.ts tests redis.ts, and test/harnesses/cas.ts register.ts, which need a server. Files of
// Vitest run by themselves.
test('every example is tested', () => {
  const files = readdirSync(join(ROOT, 'examples')).filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  expect(files.sort()).toEqual([...Object.keys(outputs), 'await-using.ts', 'redis.ts', 'register.ts'].sort())
})
