import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { until } from '../../../lab/servers/until.ts'
import { RUN_METRICS, RunRecord } from '../../cli/run/metrics-file.ts'
import { createLocks } from '../../index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { METRICS } from '../metrics.ts'
import { leaseMetrics } from '../prometheus.ts'
import { promtool } from './exposition.ts'
import { startPrometheus } from './prometheus.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string }[]
}

const folder = join(import.meta.dirname, '../../../dashboards')
const alerts = read('alerts.yml')
const panels: readonly Panel[] = JSON.parse(read('grafana.json')).panels
const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
/** As Grafana sends them. */
const sent = queries.map(expr => expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.*'))
const expressions = [...alerts.matchAll(/^ +expr: (?:>-\n)?((?:.|\n {10})+)$/gm)].map(([, text = '']) => text)

const recorded = [...alerts.matchAll(/record: (\S+)/g)].map(([, name]) => name as string)

/** Every possible series, with its labels except the user's. */
const series = new Map<string, readonly string[]>([
  ...Object.values(METRICS).flatMap(({ prometheus, kind, labels = {} }): [string, string[]][] =>
    kind === 'histogram'
      ? [
          [`${prometheus}_bucket`, ['le']],
          [`${prometheus}_sum`, []],
          [`${prometheus}_count`, []],
        ]
      : [[prometheus, Object.keys(labels)]],
  ),
  ...Object.keys(RUN_METRICS).map((name): [string, string[]] => [name, ['name', 'outcome']]),
])

test('the rules are valid, and their own tests pass', { timeout: 120_000 }, () => {
  promtool(['check', 'rules', '--lint=all', '--lint-fatal', join(folder, 'alerts.yml')])
  promtool(['test', 'rules', join(folder, 'alerts.test.yml')])
  const names = [...alerts.matchAll(/alert: (\w+)/g)].map(([, name]) => name as string)
  const tested = read('alerts.test.yml')
  expect(names.length).toBeGreaterThan(5)
  expect(names.filter(name => !tested.includes(`alertname: ${name}\n        exp_alerts`))).toEqual([])
  expect(recorded.filter(name => !tested.includes(name) && !alerts.includes(`expr: ${name} `))).toEqual([])
  expect(expressions).toHaveLength(names.length + recorded.length)
})

test('the queries of the dashboard are valid PromQL', () => {
  const rules = sent.map((expr, index) => ({ record: `query:${index}`, expr }))
  const temporary = mkdtempSync(join(tmpdir(), 'holdfast-queries-'))
  try {
    const path = join(temporary, 'queries.yml')
    writeFileSync(path, JSON.stringify({ groups: [{ name: 'queries', rules }] })) // JSON is YAML
    promtool(['check', 'rules', path])
  } finally {
    rmSync(temporary, { recursive: true })
  }
})

test('a Prometheus that scrapes leases and a job has a number for every panel', { timeout: 60_000 }, async () => {
  const metrics = leaseMetrics()
  const folder = newFolder('dashboard')
  const [file, run] = [join(folder, 'job.prom'), new RunRecord('job')]
  run.replace(file, '')
  const server = createServer((_, response) => response.end(metrics.text() + readFileSync(file, 'utf8')))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    metrics.stop()
    server.close().closeAllConnections()
  })
  await using prometheus = await startPrometheus(`127.0.0.1:${(server.address() as AddressInfo).port}`)
  await until('it has scraped', async () => (await prometheus.ask('holdfast_runs_total')).length > 0)
  run.end(0, 'success', Date.now())
  run.replace(file, '')

  await using locks = createLocks(sqlite(join(folder, 'leases.db')))
  const kept = await locks.acquire('kept')
  const unanswered = async (): Promise<string[]> => {
    await locks.using('brief', lease => lease.extend())
    const answers = await Promise.all(sent.map(async expr => [expr, await prometheus.ask(expr)] as const))
    return answers.filter(([, values]) => !values.some(value => value >= 0)).map(([expr]) => expr)
  }
  let left = sent
  const isDone = async (): Promise<boolean> => {
    left = await unanswered()
    return left.length === 0
  }
  await until('all have a number', isDone, { limit: 30_000, every: 200 }).catch(() => {})
  expect(left).toEqual([])
  await kept.release()
})

test.each([
  ['the dashboard', queries],
  ['the rules', expressions],
])('%s use only metrics and labels that exist', (_, all) => {
  const unknown = all.flatMap(expr => {
    const rest = recorded.reduce((text, name) => text.replaceAll(name, ''), expr)
    const names = [...rest.matchAll(/\bholdfast_\w+/g)].map(([name]) => name)
    if (rest === expr) expect(names.length, expr).toBeGreaterThan(0)
    // `job` is of the scrape, `name` of the command line.
    const labels = new Set(['job', 'name', ...names.flatMap(name => series.get(name) ?? [])])
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
    return [...names.filter(name => !series.has(name)), ...grouped.filter(label => !labels.has(label))]
  })
  expect(unknown).toEqual([])
})

test('every metric is on the dashboard', () => {
  const shown = queries.join('\n')
  const wanted = [...Object.values(METRICS).map(({ prometheus }) => prometheus), ...Object.keys(RUN_METRICS)]
  const absent = wanted.filter(name => !new RegExp(`\\b${name}(_bucket|_sum)?\\b`).test(shown))
  // The start of a run says less than its duration and its last success.
  expect(absent).toEqual(['holdfast_run_start_timestamp_seconds'])
})

test('every metric is in the documentation, with both names', () => {
  const page = readFileSync(join(folder, '../docs/operations/metrics.md'), 'utf8')
  for (const { prometheus, otel, labels = {} } of Object.values(METRICS)) {
    const own = Object.keys(labels).length > 0 ? `{${Object.keys(labels)}}` : ''
    expect(page).toContain(`\n| \`${prometheus}${own}\` | \`${otel}\` |`)
  }
  for (const name of Object.keys(RUN_METRICS)) expect(page).toContain(`\`${name}`)
})

test('the panels have distinct ids, and none overlaps another or the edge', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const taken = new Set<string>()
  for (const { title, gridPos } of panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.has(`${x} ${y}`), title).toBe(false)
        taken.add(`${x} ${y}`)
      }
  }
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
