import { stripVTControlCharacters } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { demoScreen, type Screen, storeScreens } from '../script/screens.ts'
import { terminalPicture } from '../script/terminal-picture.ts'

const WIDTHS = [80, 160]
const NAMES = [
  ...['ls', 'ls, empty store', 'ls, store down', 'top', 'top, one name', 'top, empty store', 'top, store down'],
  ...['run, refused', 'doctor'],
]

const screens: Screen[] = []

beforeAll(async () => {
  for await (const screen of storeScreens(WIDTHS)) screens.push(screen)
}, 240_000)

// To accept a change: npx vitest run test/screens.test.ts --update
test.each(NAMES)('a screen is not as it was: %s', async name => {
  const texts = screens.filter(screen => screen.name === name).map(contentOf)
  expect(texts).toHaveLength(WIDTHS.length)
  await expect(texts.join('\n')).toMatchFileSnapshot(`screens/${name.replaceAll(/\W+/g, '-')}.txt`)
})

test('every screen that is made is compared', () => {
  expect(new Set(screens.map(({ name }) => name))).toEqual(new Set(NAMES))
})

test('a screen is not as it was: demo', async () => {
  await expect(contentOf(await demoScreen())).toMatchFileSnapshot('screens/demo.txt')
}, 150_000)

test('a picture moved words that follow a colour, or lost the colour', () => {
  const picture = terminalPicture('a & b', '\u001b[31ma <b>\u001b[0m  c\u001b[1md\u001b[49m e', 20)
  expect(picture).toContain('<title>a &#38; b</title>')
  expect(picture).toMatch(/x="16.0" .* style="fill:#ff7b72">a &#60;b&#62;<\/text>/)
  expect(picture).toMatch(/x="74.8" [^>]*>c<\/text>/)
  expect(picture).toMatch(/x="83.2" [^>]* class="b">d<\/text>/)
  expect(picture).toMatch(/x="100.0" [^>]* class="b">e<\/text>/)
})

/** What does not differ from run to run. */
function contentOf({ columns, text }: Screen): string {
  const content = stripVTControlCharacters(text)
    .replaceAll(/(?<=Redis )[\d.]+|ahead of|behind/g, '#')
    .replaceAll(/\d+(\.\d+)? (ms|s|min|h)( \d+ (s|min))?(?![\w/])/g, '# s')
    .replaceAll(/\d\d:\d\d:\d\d/g, '#:#:#')
    .replaceAll(/\b\d{16}\b|…\d{6,}/g, '#token')
    .replaceAll(/\S*…\S*/g, '…') // where a text is cut depends on how long the times are
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:#')
    .replaceAll(/[━╌]+/g, '━')
    .replaceAll(/replica-\d/g, 'replica-#')
    .replaceAll(/wrote +\d+|\d+(?= of 60)/g, '#')
    .replaceAll(/ +$/gm, '')
    .replaceAll(/ {2,}/g, '  ')
    .replaceAll(/^ +(?=# s)/gm, '')
  return `${columns} columns\n\n${content.trimEnd()}\n`
}
