import { once } from 'node:events'
import { Agent, createServer, request, type Server, type ServerResponse } from 'node:http'
import { type Port, reservePort } from '../../../../lab/servers/port.ts'

interface Rule {
  readonly match: RegExp
  act(pass: () => void, response: ServerResponse): void
}

/** An HTTP proxy in front of one server, which knows one request from another by its path and body. */
export async function startRelay(target: { readonly port: number }): Promise<HttpRelay> {
  const relay = new HttpRelay(target, await reservePort())
  await relay.listen()
  return relay
}

export class HttpRelay implements AsyncDisposable {
  readonly port: number
  /** Path and body of each request, as they came. */
  readonly requests: string[] = []
  /** May change the answer to a request, or delay it. */
  onAnswer: (request: string, answer: string) => string | Promise<string> = (_, answer) => answer
  readonly #target: { readonly port: number }
  readonly #reservation: Port
  readonly #agent = new Agent({ keepAlive: true })
  readonly #rules = new Set<Rule>()
  readonly #server: Server

  constructor(target: { readonly port: number }, reservation: Port) {
    this.#target = target
    this.#reservation = reservation
    this.port = reservation.number
    this.#server = createServer((asked, response) => {
      let body = ''
      asked.setEncoding('utf8').on('data', chunk => {
        body += chunk
      })
      asked.on('end', () => this.#handle(asked.url ?? '', body, asked.headers.authorization, response))
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(this.port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /** The next request that matches is held back; resolves when it came, to what lets it go on. */
  holdBack(match: RegExp): Promise<() => void> {
    return new Promise(resolve => this.#rules.add({ match, act: pass => resolve(pass) }))
  }

  /** The next request that matches is answered so instead, and never arrives. */
  answer(match: RegExp, status: number, body: string): void {
    this.#rules.add({ match, act: (_, response) => void response.writeHead(status).end(body) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    this.#agent.destroy()
    await this.#reservation.release()
  }

  #handle(path: string, body: string, authorization: string | undefined, response: ServerResponse): void {
    const text = `${path} ${body}`
    this.requests.push(text)
    const pass = (): void => this.#forward(path, body, authorization, response)
    const rule = [...this.#rules].find(({ match }) => match.test(text))
    if (rule) this.#rules.delete(rule)
    if (rule) rule.act(pass, response)
    else pass()
  }

  #forward(path: string, body: string, authorization: string | undefined, response: ServerResponse): void {
    const headers = { 'content-length': Buffer.byteLength(body), ...(authorization && { authorization }) }
    const isStream = path.endsWith('/watch')
    const agent = isStream ? false : this.#agent
    const onward = request(
      { host: '127.0.0.1', port: this.#target.port, path, method: 'POST', headers, agent },
      from => {
        response.writeHead(from.statusCode ?? 500)
        if (isStream) return void from.pipe(response)
        let answer = ''
        from.setEncoding('utf8').on('data', chunk => {
          answer += chunk
        })
        from.on('end', async () => response.end(await this.onAnswer(`${path} ${body}`, answer)))
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => isStream && onward.destroy())
    onward.end(body)
  }
}
