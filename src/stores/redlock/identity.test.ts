import { expect, test } from 'vitest'
import { Identities, type Identity, identityOf } from './identity.ts'

const NONE = '0'.repeat(40)

function info(fields: Record<string, string | undefined>): string {
  const all = {
    redis_mode: 'standalone',
    run_id: 'r1',
    uptime_in_seconds: '42',
    role: 'master',
    master_replid: 'h1',
    master_replid2: NONE,
    ...fields,
  }
  return Object.entries(all)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')
}

function identity(runId: string, ...histories: string[]): Identity {
  return { runId, uptime: 0, histories }
}

test('a server reports its identity, its start and the origin of its data', () => {
  expect(identityOf(info({ master_replid2: 'h0' }))).toEqual({ runId: 'r1', uptime: 42, histories: ['h1', 'h0'] })
  expect(identityOf(info({})).histories).toEqual(['h1'])
})

test.each([
  [{ role: 'slave', master_host: 'db', master_port: '6379' }, /a replica of db:6379/],
  [{ redis_mode: 'cluster' }, /a node of a Redis Cluster/],
  [{ redis_mode: undefined, server_mode: 'cluster' }, /a node of a Redis Cluster/], // Valkey
])('%o decides nothing by itself', (fields, message) => {
  expect(() => identityOf(info(fields))).toThrow(message)
})

test('two servers of a store must not be the same, or copies of each other', () => {
  const identities = new Identities()
  const [a, b] = [{ name: 'a:1' }, { name: 'b:2' }]
  identities.admit(a, identity('r1', 'h1'))
  expect(() => identities.admit(b, identity('r1', 'h2'))).toThrow(/the same server as a:1/)
  expect(() => identities.admit(b, identity('r2', 'h2', 'h1'))).toThrow(/it and a:1 have data copied/)
  identities.admit(b, identity('r2', 'h2'))
  identities.admit(a, identity('r3', 'h1')) // restarted, with its own data
  expect(() => identities.admit(b, identity('r3', 'h2'))).toThrow(/the same server as a:1/)
})
