import { expect, test } from 'vitest'
import { linkedPages, manifestOf, memberManifestOf, npmPage } from '../script/manifest.ts'

const URL = 'https://forge.example/team/holdfast'
const ROOT = JSON.stringify({ version: '1.2.3', repository: { type: 'git', url: `git+${URL}.git` } })

test('homepage and bugs of all packages follow from the repository', () => {
  const addresses = { homepage: `${URL}#readme`, bugs: { url: `${URL}/issues` } }
  expect(JSON.parse(manifestOf(ROOT))).toMatchObject(addresses)
  expect(JSON.parse(memberManifestOf('{}', ROOT, 'lab'))).toMatchObject({
    ...addresses,
    repository: { directory: 'lab' },
  })
  expect(JSON.parse(memberManifestOf('{}', '{}', 'lab'))).toEqual({})
})

test('the package has pages until it has an address for links to them', () => {
  const says = "'grant the permissions listed in docs/stores/redis.md'"
  expect(JSON.parse(manifestOf('{}')).files).toContain('docs/**/*.md')
  expect(linkedPages(says, '{}')).toBe(says)
  expect(JSON.parse(manifestOf(ROOT)).files).toEqual(['dist', 'CHANGELOG.md'])
  expect(linkedPages(says, ROOT)).toBe(`'grant the permissions listed in ${URL}/blob/v1.2.3/docs/stores/redis.md'`)
})

test('links that lead out of the package are absolute', () => {
  const isShipped = (path: string): boolean => path.startsWith('docs/')
  const at = (path: string, page: string): string => npmPage(path, page, ROOT, isShipped)
  expect(at('README.md', '[a](docs/a.md#b), [c](#c), [d](https://d.example), ![e](e.svg)')).toBe(
    `[a](docs/a.md#b), [c](#c), [d](https://d.example), ![e](${URL}/raw/v1.2.3/e.svg)`,
  )
  expect(at('docs/sub/a.md', '[b](../b.md), [c](../../src/c.ts#L1)')).toBe(
    `[b](../b.md), [c](${URL}/blob/v1.2.3/src/c.ts#L1)`,
  )
  expect(() => npmPage('README.md', '', '{}', isShipped)).toThrow('package.json has no repository')
})
