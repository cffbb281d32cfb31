import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { PACKAGES, type PackageName, Project, pack, ROOT, succeed } from './project.ts'

/** What no published file may contain. */
const SECRETS =
  /-----BEGIN [A-Z ]*PRIVATE KEY|\bnpm_[A-Za-z0-9]{36}|\bgh[pousr]_[A-Za-z0-9]{36}|\bAKIA[A-Z0-9]{16}|_authToken/
const FOLDERS = new RegExp(`(?:${[ROOT, homedir(), '/home', '/Users', 'C:\\Users'].map(escaped).join('|')})[/\\\\]\\w`)

/** Packed bytes. `package.test.ts` limits the main package. */
const LARGEST: Partial<Record<PackageName, number>> = {
  'holdfast-lab': 160_000,
  'holdfast-redlock': 30_000,
  'holdfast-redis-semaphore': 27_000,
}

const version = manifestAt(ROOT).version
const folder = mkdtempSync(join(tmpdir(), 'holdfast-tarballs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(Object.keys(PACKAGES) as PackageName[])('%s', name => {
  test('has no secret, and no folder of the machine that packed it', async () => {
    const files = await unpacked(name)
    expect(files.length).toBeGreaterThan(3)
    expect(files.filter(([, text]) => SECRETS.test(text) || FOLDERS.test(text)).map(([path]) => path)).toEqual([])
  })

  test('has its licence, the version of the release, and no dependency but holdfast', async () => {
    const files = new Map(await unpacked(name))
    expect(files.get('package/LICENSE')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'))
    const manifest = JSON.parse(files.get('package/package.json') ?? '')
    expect(manifest).toMatchObject({ name, version, license: 'MIT' })
    expect(manifest.workspaces).toBeUndefined()
    expect([undefined, { holdfast: version }]).toContainEqual(manifest.dependencies)
    expect([undefined, version]).toContain(manifest.peerDependencies?.holdfast)
  })

  test('stays small', async () => {
    expect(statSync(await pack(folder, name)).size).toBeLessThanOrEqual(LARGEST[name] ?? Number.POSITIVE_INFINITY)
  })
})

test('such contents are found', () => {
  for (const text of ['-----BEGIN RSA PRIVATE KEY', `npm_${'a1'.repeat(18)}`, '//host/:_authToken='])
    expect(text).toMatch(SECRETS)
  for (const text of [`${ROOT}/src`, '/home/me', 'C:\\Users\\me']) expect(text).toMatch(FOLDERS)
})

test('the software bill of materials lists these packages and no other, all with their licence', () => {
  const { components } = JSON.parse(readFileSync(join(process.env.HOLDFAST_TARBALLS ?? '', 'sbom.cdx.json'), 'utf8'))
  const found = components.map(({ name, licenses }: { name: string; licenses: unknown }) => [name, licenses])
  const expected = Object.keys(PACKAGES).map(name => [name, [{ license: { id: 'MIT' } }]])
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected))
})

/** The files of a tarball, by path. */
async function unpacked(name: PackageName): Promise<[path: string, text: string][]> {
  const project = new Project()
  try {
    succeed(await project.run('tar', ['-xzf', await pack(folder, name)]))
    const { stdout } = succeed(await project.run('tar', ['-tzf', await pack(folder, name)]))
    const paths = stdout.trim().split('\n')
    return paths.map(path => [path, readFileSync(join(project.folder, path), 'utf8')])
  } finally {
    project.remove()
  }
}

function manifestAt(place: string): { version: string } {
  return JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
}

function escaped(text: string): string {
  return text.replaceAll(/[\\/.]/g, '\\$&')
}
