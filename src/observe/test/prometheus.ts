import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, newPlace, type Place, ServerProcess } from '../../../lab/servers/process.ts'

/** A Prometheus that looks at `target`, a `host:port`, every second. */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const server = new Prometheus(await newPlace('prometheus'), target)
  await server.start()
  return server
}

class Prometheus extends ServerProcess {
  constructor(place: Place, target: string) {
    super(place)
    const scrape_configs = [{ job_name: 'job', scrape_interval: '1s', static_configs: [{ targets: [target] }] }]
    writeFileSync(this.#configPath, JSON.stringify({ scrape_configs })) // JSON is YAML
  }

  /** The values of the series that answer a question now. Rejects if it cannot be asked. */
  async ask(expr: string): Promise<number[]> {
    const response = await fetch(`http://${this.host}:${this.port}/api/v1/query?query=${encodeURIComponent(expr)}`)
    const { status, data, error } = (await response.json()) as Answer
    if (status !== 'success') throw new Error(`${expr}: ${error}`)
    return data.result.map(({ value: [, value] }) => Number(value))
  }

  protected override command(): Command {
    const args = [
      `--config.file=${this.#configPath}`,
      `--storage.tsdb.path=${join(this.folder, 'data')}`,
      `--web.listen-address=${this.host}:${this.port}`,
    ]
    return { binary: 'prometheus', debianPackage: 'prometheus', args }
  }

  protected override async isReady(): Promise<boolean> {
    return (await fetch(`http://${this.host}:${this.port}/-/ready`)).ok
  }

  get #configPath(): string {
    return join(this.folder, 'prometheus.yml')
  }
}

interface Answer {
  readonly status: 'success' | 'error'
  readonly error?: string
  readonly data: { readonly result: readonly { readonly value: readonly [time: number, value: string] }[] }
}
