import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { closeBrowser, openPage } from './browser.ts'
import { run } from './process.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/dashboard')

afterAll(closeBrowser)

test.each(globSync('*.ts', { cwd: EXAMPLES }).sort())('the dashboard is mounted as the example %s does', async file => {
  const address = await run(join(EXAMPLES, file)).line
  const page = await openPage(address)
  await page.locator('#rows').getByText('reports').click()
  await page.locator('#one').getByText('Held by').waitFor()
  await page.getByLabel('Type reports').fill('reports')
  await page.getByRole('button', { name: 'Break' }).click()
  await page.getByText('Taken from').waitFor()
  await page.locator('#one dd').getByText('Free').waitFor()
  expect(new URL(page.url()).pathname).toBe('/locks')
})

test('there is an example for each framework that the docs name', () => {
  const names = globSync('*.ts', { cwd: EXAMPLES }).map(file => basename(file, '.ts'))
  expect(names.sort()).toEqual(['express', 'fastify', 'hono', 'nest'])
})
