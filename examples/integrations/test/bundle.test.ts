import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { Rolldown } from 'tsdown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { minifiedScripts } from '../../../script/lua.ts'

const HANDLER = join(import.meta.dirname, '../lambda.ts')

/** A platform: two events at the same time, and a third one afterwards. */
const PLATFORM = `
const { handler } = require('./handler.cjs')
const events = ['orders.csv', 'orders.csv'].map(file => handler({ file }))
Promise.all(events).then(async both => {
  const statuses = [...both, await handler({ file: 'orders.csv' })].map(({ statusCode }) => statusCode)
  console.log(JSON.stringify(statuses))
  process.exit()
})`

/** The package has its scripts in the code; the sources read files. */
const scripts = minifiedScripts()
const scriptsOfEsbuild: Plugin = {
  name: 'scripts',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/stores\/.*\.ts$/ }, async ({ path }) => {
      const code = readFileSync(path, 'utf8')
      const transform = scripts.transform as (code: string, id: string) => Promise<{ code: string } | undefined>
      return { contents: (await transform(code, path))?.code ?? code, loader: 'ts' }
    })
  },
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

const bundlers: Record<string, (file: string) => Promise<unknown>> = {
  esbuild: outfile =>
    build({
      entryPoints: [HANDLER],
      outfile,
      bundle: true,
      minify: true,
      platform: 'node',
      format: 'cjs',
      plugins: [scriptsOfEsbuild],
      logOverride: { 'empty-import-meta': 'silent' }, // the package has a CommonJS build, the sources have not
    }),
  async rolldown(file) {
    const bundle = await Rolldown.rolldown({ input: HANDLER, platform: 'node', plugins: [scripts] })
    await bundle.write({ file, format: 'cjs', minify: true })
  },
}

test.each(Object.entries(bundlers))('%s makes one file, which runs without node_modules', async (bundler, bundle) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-lambda-'))
  try {
    await bundle(join(folder, 'handler.cjs'))
    expect(readdirSync(folder)).toEqual(['handler.cjs'])
    writeFileSync(join(folder, 'platform.cjs'), PLATFORM)
    const env = { PATH: process.env.PATH, REDIS_URL: server.url }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['platform.cjs'], { cwd: folder, env })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout).sort()).toEqual([200, 200, 409])
    const { size } = statSync(join(folder, 'handler.cjs'))
    console.log(`${bundler}: ${Math.round(size / 1_000)} kB, with ioredis`)
    expect(size).toBeLessThan(500_000)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
