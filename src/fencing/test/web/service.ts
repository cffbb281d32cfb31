import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { fenceOf, inTurn, nodeFence, staleAnswer } from '../../http/index.ts'
import { sqliteFence } from '../../sqlite/index.ts'

// A service of texts in files. Anybody may set them, or append to them after ?pause=MS, at /naive/NAME, and only the newest
// holder at /fenced/NAME. Its marks are in a file too, so that it may be killed.
const [folder = '', port = '0'] = process.argv.slice(2)
const fence = sqliteFence(new DatabaseSync(join(folder, 'marks.db')))
fence.install()
const { marks } = fence
const mayGoOn = nodeFence(marks)

// Else it ends an idle connection at the moment at which a client writes to it.
const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://any')
  const [, how, name = ''] = pathname.split('/')
  const path = join(folder, name)
  const body = await text(request)
  const write = async (): Promise<void> => {
    const pause = Number(searchParams.get('pause'))
    if (pause > 0) await new Promise(resolve => setTimeout(resolve, pause))
    if (request.method === 'POST') appendFileSync(path, body)
    else writeFileSync(path, body)
  }
  try {
    if (request.method === 'GET') response.end(existsSync(path) ? readFileSync(path) : '')
    else if (how === 'naive') response.end(await write())
    else if (await mayGoOn(request, response)) response.end(await inTurn(fenceOf(request), marks, write))
  } catch (error) {
    const { status, headers, body: answer } = staleAnswer(error) ?? { status: 500 }
    response.writeHead(status, headers).end(answer)
  }
})
server.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
