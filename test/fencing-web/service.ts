import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fenceOf, inTurn, nodeFence } from '../../src/fencing/http/index.ts'
import { fileMarks } from './file-marks.ts'

// A service with one value, in a file, which anybody may set at /naive and only the newest holder at /fenced. Its marks
// are in a file too, so that it may be killed.
const [folder = '', port = '0'] = process.argv.slice(2)
const value = join(folder, 'value')
const marks = fileMarks(join(folder, 'marks.db'))
const mayGoOn = nodeFence(marks)

const server = createServer(async (request, response) => {
  const body = await text(request)
  const set = (): void => writeFileSync(value, body)
  if (request.method === 'GET') response.end(existsSync(value) ? readFileSync(value) : '')
  else if (request.url === '/naive') response.end(set())
  else if (await mayGoOn(request, response)) {
    await inTurn(marks, fenceOf(request), set)
    response.end()
  }
})
server.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
