import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { LeaseError } from '../../src/index.ts'
import { type Command, newPlace, ServerProcess } from './process.ts'
import { until } from './until.ts'

const MAIN = join(import.meta.dirname, 'azurite/node_modules/azurite/dist/src/blob/main.js')

/**
 * Azurite writes a few blobs at a time. A request that is aborted while it waits for its turn would never end, and so
 * block one of these turns for ever. Azure has no such limit, so here such a request fails. Nothing is synced to the disk,
 * because only the process is killed.
 */
const PATCH = `
import { createRequire } from 'node:module'
const { prototype } = createRequire(${JSON.stringify(MAIN)})('../common/persistence/FSExtentStore.js').default
const { streamPipe } = prototype
prototype.streamPipe = async function (body, file, synced, id) {
  if (body.destroyed) throw new Error('the request was aborted')
  return streamPipe.call(this, body, file, undefined, id)
}`

/** The account that each Azurite has. Its key is public. */
const ACCOUNT = 'devstoreaccount1'
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

/** Azurite, the emulator of Azure Blob Storage. It keeps its data across restarts. */
export async function startAzurite(): Promise<Azurite> {
  const server = new Azurite(await newPlace('azurite'))
  await server.start()
  return server
}

export class Azurite extends ServerProcess {
  /** What `BlobServiceClient.fromConnectionString` takes. */
  get connectionString(): string {
    return this.connectionStringAt(this.port)
  }

  /** The same for a proxy at another local port. */
  connectionStringAt(port: number): string {
    const endpoint = `http://${this.host}:${port}/${ACCOUNT}`
    return `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${endpoint};`
  }

  /** Azurite writes what it has confirmed only every 5 s, and when it is asked to end. So it is killed after that. */
  override async kill(): Promise<void> {
    if (!this.isRunning) return
    this.resume()
    const { length } = this.output
    process.kill(-this.pid, 'SIGTERM')
    await until('Azurite is closed', () => !this.isRunning || this.output.slice(length).includes('successfully closed'))
    await super.kill()
  }

  protected override command(): Command {
    if (!existsSync(MAIN))
      throw new LeaseError('DRIVER_MISSING', 'Azurite was not found: run ./script/setup --servers in a checkout')
    const options = '--silent --disableTelemetry --skipApiVersionCheck'.split(' ')
    const patch = `--import=data:text/javascript,${encodeURIComponent(PATCH)}`
    const args = [patch, MAIN, '--blobPort', String(this.port), '--location', this.folder, ...options]
    return { binary: 'node', debianPackage: 'nodejs', args }
  }

  protected override async isReady(): Promise<boolean> {
    return (await this.#list()).status === 403 // a request without a signature
  }

  /** Such as `3.35.0`. */
  async version(): Promise<string> {
    return (await this.#list()).headers.get('server')?.split('/')[1] ?? 'unknown'
  }

  async #list(): Promise<Response> {
    const response = await fetch(`http://${this.host}:${this.port}/${ACCOUNT}?comp=list`, {
      signal: AbortSignal.timeout(5_000),
    })
    await response.arrayBuffer()
    return response
  }
}
