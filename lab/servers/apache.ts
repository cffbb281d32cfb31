import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UNPACKED } from './binary.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'

const PACKAGE = 'apache2-bin'

export interface ApacheOptions {
  /**
   * `one` handles one whole request at a time. `many`, the default of Apache, checks `If-Match` first and replaces the
   * file when the body has arrived.
   * @default 'one'
   */
  readonly workers?: 'one' | 'many'
  /** The timeout of a request's body, in seconds. @default 20 */
  readonly bodyLimit?: number
}

/** An Apache that serves and stores files by WebDAV. */
export async function startApache(options: ApacheOptions = {}): Promise<Apache> {
  const server = new Apache(await newPlace('apache'), options)
  await server.start()
  return server
}

export class Apache extends ServerProcess {
  constructor(place: Place, { workers = 'one', bodyLimit = 20 }: ApacheOptions) {
    super(place)
    const files = join(this.folder, 'files')
    mkdirSync(files)
    const mpm = workers === 'one' ? 'prefork' : 'event'
    const lines = [
      `ServerName ${this.host}`,
      `ServerRoot ${this.folder}`,
      `PidFile ${join(this.folder, 'apache.pid')}`,
      `Listen ${this.host}:${this.port}`,
      ...[`mpm_${mpm}`, 'authz_core', 'dav', 'dav_fs', 'reqtimeout'].map(
        name => `LoadModule ${name}_module ${join(modules(), `mod_${name}.so`)}`,
      ),
      'ErrorLog /dev/stderr',
      `DocumentRoot ${files}`,
      `DavLockDB ${join(this.folder, 'locks')}`,
      `RequestReadTimeout body=${bodyLimit}`,
      // An idle connection would occupy the only worker.
      ...(workers === 'one' ? ['StartServers 1', 'ServerLimit 1', 'MaxRequestWorkers 1', 'KeepAlive Off'] : []),
      // Started as root, it changes to this user.
      ...(process.getuid?.() === 0 ? ['User nobody', 'Group nogroup'] : []),
      `<Directory ${files}>`,
      'Dav On',
      'Require all granted',
      // The default ETag is weak for a second after each write, and a weak one never matches.
      'FileETag Digest',
      '</Directory>',
    ]
    writeFileSync(this.#configPath, `${lines.join('\n')}\n`)
    for (const folder of [this.folder, files]) chmodSync(folder, 0o777)
  }

  /** The URL of the file with this name. */
  url(name: string): string {
    return `http://${this.host}:${this.port}/${name}`
  }

  protected override command(): Command {
    rmSync(join(this.folder, 'apache.pid'), { force: true }) // of one that was killed
    return { binary: 'apache2', debianPackage: PACKAGE, args: ['-f', this.#configPath, '-DFOREGROUND'] }
  }

  protected override async isReady(): Promise<boolean> {
    const response = await fetch(this.url('nothing'), { signal: AbortSignal.timeout(5_000) })
    await response.arrayBuffer()
    return response.status === 404
  }

  get #configPath(): string {
    return join(this.folder, 'apache.conf')
  }
}

function modules(): string {
  const installed = '/usr/lib/apache2/modules'
  return existsSync(installed) ? installed : join(UNPACKED, 'lib/apache2/modules')
}
