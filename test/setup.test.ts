import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../lab/servers/folder.ts'
import { ROOT } from './script-node.ts'

test('script/setup does not empty the folder that a link at node_modules leads to', { timeout: 60_000 }, () => {
  // A checkout whose only package is its own, so that npm needs no registry.
  const folder = newFolder('setup')
  const others = newFolder('others')
  for (const script of ['setup', 'common.sh', 'newest.sh'])
    cpSync(join(ROOT, 'script', script), join(folder, 'script', script))
  const own = { name: 'scratch', version: '1.0.0', workspaces: ['part'] }
  const part = { name: 'part', version: '1.0.0' }
  const packages = { '': own, part, 'node_modules/part': { resolved: 'part', link: true } }
  mkdirSync(join(folder, 'part'))
  writeFileSync(join(folder, 'part/package.json'), JSON.stringify(part))
  writeFileSync(join(folder, 'package.json'), JSON.stringify(own))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...own, lockfileVersion: 3, packages }))
  mkdirSync(join(others, 'package'))
  symlinkSync(others, join(folder, 'node_modules'))
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  execFileSync(join(folder, 'script/setup'), { env: { ...process.env, PATH }, stdio: 'pipe' })
  expect(readdirSync(others)).toEqual(['package'])
  expect(readdirSync(join(folder, 'node_modules'))).toContain('part')
})
