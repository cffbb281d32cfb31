// Makes the pictures of the documentation from real runs: ./script/node script/pictures.ts [PATH …]
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pagePictures } from './page-pictures.ts'
import { demoScreen, type Screen, storeScreens } from './screens.ts'
import { terminalPicture } from './terminal-picture.ts'

const ROOT = join(import.meta.dirname, '..')

/** The pictures of screens of `storeScreens`, by their names. */
const OF_STORE: Readonly<Record<string, string>> = {
  top: 'docs/operations/top-list.svg',
  'top, one name': 'docs/operations/top-name.svg',
}

/** The demo appears so many times faster than it ran. */
const PACE = 4

const wanted = process.argv.slice(2)
const isWanted = (path: string): boolean => wanted.length === 0 || wanted.includes(path)

if (isWanted('docs/demo.svg')) {
  const { text, ...screen } = await demoScreen()
  write('docs/demo.svg', { ...screen, text: text.replace(/\n.*Try next[\s\S]*/, '') }, PACE)
}
if (Object.values(OF_STORE).some(isWanted))
  for await (const screen of storeScreens([100])) {
    const path = OF_STORE[screen.name]
    if (path !== undefined && isWanted(path)) write(path, screen)
  }

await pagePictures(isWanted)

function write(path: string, { name, columns, text }: Screen, pace?: number): void {
  writeFileSync(join(ROOT, path), terminalPicture(`holdfast ${name}`, text, columns, pace))
  console.log(path)
}
