import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UNPACKED } from './binary.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'

const PACKAGE = 'apache2-bin'

export interface ApacheOptions {
  /**
   * With `one` it carries out one request from its first byte to its last before it looks at the next. With `many`, its
   * default, it looks at `If-Match` first, and replaces the file when the body is there.
   * @default 'one'
   */
  readonly workers?: 'one' | 'many'
  /** Seconds that it waits for the body of a request. @default 20 */
  readonly bodyLimit?: number
}

/** An Apache that serves and takes files by WebDAV. */
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
      // A connection that is kept would have the one worker to itself.
      ...(workers === 'one' ? ['StartServers 1', 'ServerLimit 1', 'MaxRequestWorkers 1', 'KeepAlive Off'] : []),
      // As root it starts as somebody else, who writes the files.
      ...(process.getuid?.() === 0 ? ['User nobody', 'Group nogroup'] : []),
      `<Directory ${files}>`,
      'Dav On',
      'Require all granted',
      // Its own kind is weak for a second after each write, and a weak one never matches.
      'FileETag Digest',
      '</Directory>',
    ]
    writeFileSync(this.#configPath, `${lines.join('\n')}\n`)
    for (const folder of [this.folder, files]) chmodSync(folder, 0o777)
  }

  /** Of the file with this name. */
  url(name: string): string {
    return `http://${this.host}:${this.port}/${name}`
  }

  protected override command(): Command {
    rmSync(join(this.folder, 'apache.pid'), { force: true }) // of one that was killed
    return { binary: 'apache2', debianPackage: PACKAGE, args: ['-f', this.#configPath, '-DFOREGROUND'] }
  }

  protected override async isReady(): Promise<boolean> {
    const response = await fetch(this.url('nothing'))
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
