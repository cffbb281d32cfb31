import { expect, test, vi } from 'vitest'
import { startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { connect } from '../../index.ts'
import { leaseMetrics } from '../../observe/prometheus.ts'

test('replicas whose work fails are seen in health, metrics and warnings; an outage of Redis makes none of them stuck', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  await using server = await startRedis()
  await using one = await connect(server.url, { ttl: 1_000, owner: 'one' })
  await using two = await connect(server.url, { ttl: 1_000, owner: 'two' })
  const metrics = leaseMetrics({ labels: ({ owner }) => ({ owner }) })
  let fails = true
  const elections = [one, two].map(locks => {
    const election = locks.election('scheduler', { pause: 20, maxPause: 200 })
    void election.run(async ({ signal }) => {
      if (fails) throw new Error('connect postgres://app:secret@db')
      await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
    })
    return election
  })
  const health = () => elections.map(election => election.health())

  await until('both have failed', () => health().every(({ failures }) => failures >= 3))
  expect(health().map(({ ok, stuck }) => [ok, stuck])).toEqual([
    [false, false],
    [false, false],
  ])
  expect(JSON.stringify(health())).not.toContain('secret')
  for (const owner of ['one', 'two'])
    expect(metrics.text()).toMatch(
      new RegExp(`holdfast_leadership_terms_total\\{owner="${owner}",outcome="failed"\\} (?:[3-9]|\\d\\d+)$`, 'm'),
    )
  expect(emit.mock.calls.map(([, options]) => options)).toMatchObject([
    { code: 'HOLDFAST_TERM_FAILED' },
    { code: 'HOLDFAST_TERM_FAILED' },
  ])

  fails = false
  await until('one leads, and all are well', () => health().every(({ ok }) => ok))
  expect(health().map(({ state }) => state)).toContain('leading')

  await server.kill()
  await until('both notice the outage', () => health().every(({ ok }) => !ok))
  expect(health().map(({ stuck, lastError }) => [stuck, lastError !== undefined])).toEqual([
    [false, true],
    [false, true],
  ])
  await server.start()
  await until(
    'one leads again',
    () => health().every(({ ok }) => ok) && health().some(({ state }) => state === 'leading'),
  )
  metrics.stop()
  emit.mockRestore()
})
