import { expect, test } from 'vitest'
import { manifestOf, memberManifestOf, npmReadme } from '../script/manifest.ts'

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

test('the links of the npm page are absolute', () => {
  const readme = '[a](docs/a.md#b), [c](#c), [d](https://d.example), ![e](e.svg)'
  const expected = `[a](${URL}/blob/v1.2.3/docs/a.md#b), [c](#c), [d](https://d.example), ![e](${URL}/raw/v1.2.3/e.svg)`
  expect(npmReadme(readme, ROOT)).toBe(expected)
  expect(() => npmReadme(readme, '{}')).toThrow('package.json has no repository')
})
