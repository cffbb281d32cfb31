import { once } from 'node:events'
import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { type PostgresServer, startPostgres, unprivileged } from '../../../../lab/servers/postgres.ts'
import type { Store } from '../../../contract/store.ts'
import { openPostgres } from '../open.ts'
import { claimOf, hold } from './support.ts'

const hidden = vi.hoisted(() => new Set<string>())
// Both clients are installed here; a URL uses the first that it finds.
vi.mock('../../url/load.ts', async original => {
  const { load } = await original<typeof import('../../url/load.ts')>()
  return { load: (name: string) => (hidden.has(name) ? undefined : load(name)) }
})

const certificates = join(import.meta.dirname, '../../../../test/certificates')
const ca = join(certificates, 'ca.pem')

let server: PostgresServer
let plain: PostgresServer

beforeAll(async () => {
  const folder = newFolder('sslmode')
  // It takes no key that others may read.
  const [key, cert] = [join(folder, 'server.key'), join(folder, 'server.pem')]
  for (const path of [key, cert]) writeFileSync(path, readFileSync(join(certificates, basename(path))), { mode: 0o600 })
  const user = unprivileged()
  if (user) for (const path of [folder, key, cert]) chownSync(path, user.uid, user.gid)
  const config = { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key }
  server = await startPostgres({ config })
  plain = await startPostgres()
})
afterAll(async () => {
  await server.stop()
  await plain.stop()
})

describe.each([
  ['pg', 'postgres'],
  ['postgres', 'pg'],
])('M10: with %s', (_, other) => {
  afterEach(() => void vi.unstubAllEnvs())

  function open(url: string): Promise<Store> {
    hidden.add(other)
    try {
      return openPostgres(url)
    } finally {
      hidden.delete(other)
    }
  }

  /** Is the connection encrypted, or why is there none? */
  async function tryWith(options: string, at = server, host = 'localhost'): Promise<boolean | string> {
    const name = `${Math.random()}`.slice(2)
    const url = at.url().replace('127.0.0.1', host)
    try {
      await using store = await open(`${url}?create=true&direct=false&application_name=${name}&${options}`)
      await hold(store, claimOf(name))
      vi.unstubAllEnvs() // the query is not what is tested
      const [row] = await at.query<{ ssl: boolean }>(
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = '${name}'`,
      )
      return row?.ssl ?? 'no connection'
    } catch (error) {
      return `${(error as { code?: string }).code}: ${(error as Error).message}`
    }
  }

  const untrusted = /STORE_UNAVAILABLE: .*(unable to verify the first certificate|self-signed certificate)/

  test.each(['require', 'verify-ca', 'verify-full'])('sslmode=%s verifies the certificate', async mode => {
    expect(await tryWith(`sslmode=${mode}`)).toMatch(untrusted)
    expect(await tryWith(`sslmode=${mode}&sslrootcert=${ca}`)).toBe(true)
    expect(await tryWith(`sslmode=${mode}&sslrootcert=${ca}`, plain)).toMatch(
      /^INVALID_ARGUMENT: PostgreSQL cannot be reached: .*; the URL or the client asks for TLS/,
    )
  })

  test('the certificate must name the host, also where that is an address', async () => {
    expect(await tryWith(`sslmode=require&sslrootcert=${ca}`, server, '127.0.0.1')).toBe(true)
    // Not in the certificate, as "localhost" is.
    const listener = createServer(client => {
      const onward = connect({ host: server.host, port: server.port })
      client.on('error', () => {})
      onward.on('error', () => {})
      pipeline(client, onward, client, () => {})
    })
    listener.listen(server.port, '127.0.0.3')
    await once(listener, 'listening')
    expect(await tryWith('sslmode=no-verify', server, '127.0.0.3')).toBe(true)
    expect(await tryWith(`sslmode=require&sslrootcert=${ca}`, server, '127.0.0.3')).toMatch(
      /STORE_UNAVAILABLE: .*IP: 127\.0\.0\.3 is not in the cert's list/,
    )
    listener.close()
  })

  test('files of certificates alone mean verify-full', async () => {
    expect(await tryWith(`sslrootcert=${ca}`)).toBe(true)
    expect(
      await tryWith(`sslrootcert=${ca}&sslcert=${certificates}/client.pem&sslkey=${certificates}/client.key`),
    ).toBe(true)
  })

  test('no-verify encrypts and accepts every certificate, disable does not encrypt', async () => {
    expect(await tryWith('sslmode=no-verify')).toBe(true)
    expect(await tryWith('sslmode=disable')).toBe(false)
    expect(await tryWith('')).toBe(false)
  })

  test('PGSSLMODE means the same, and the URL comes first', async () => {
    vi.stubEnv('PGSSLMODE', 'require')
    expect(await tryWith('')).toMatch(untrusted)
    expect(await tryWith('sslmode=disable')).toBe(false)
    vi.stubEnv('PGSSLMODE', 'prefer')
    expect(await tryWith('')).toMatch(/INVALID_ARGUMENT: the environment variable PGSSLMODE is prefer/)
  })

  test.each(['require', 'prefer'])('a Unix socket, which has no TLS, is used although PGSSLMODE is %s', async mode => {
    vi.stubEnv('PGSSLMODE', mode)
    expect(await tryWith('', server, encodeURIComponent(server.folder))).toBe(false)
  })

  test.each([
    [
      'sslmode=prefer',
      /sslmode in the URL of the PostgreSQL store is prefer, which an attacker can downgrade to no TLS: .*verify-full/,
    ],
    ['sslmode=allow', /is allow, which an attacker can downgrade to no TLS/],
    ['sslmode=on', /is "on": write verify-full .*no-verify or disable/],
    ['sslmode=', /is "": write verify-full/],
    ['sslmode=disable&sslrootcert=/nowhere', /the file of sslrootcert .* cannot be read/],
    [`sslmode=disable&sslrootcert=${ca}`, /has sslrootcert and sslmode=disable/],
  ])('refuses %s', async (options, message) => {
    expect(await tryWith(options)).toMatch(/^INVALID_ARGUMENT/)
    expect(await tryWith(options)).toMatch(message)
  })

  test('warns once per host about a password that is sent to another machine without TLS', async () => {
    const warned: string[] = []
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation((text, options) => {
      warned.push(`${(options as { code?: string }).code} ${text}`)
    })
    const host = `${other}.example`
    for (const url of [
      'postgres://app:secret@localhost/app',
      'postgres://app:secret@127.0.0.9/app',
      'postgres://app:secret@[::1]/app',
      `postgres://app@${host}/app`,
      `postgres://app:secret@${host}/app?sslmode=verify-full`,
    ])
      await (await open(url))[Symbol.asyncDispose]()
    expect(warned).toEqual([])
    for (let turn = 0; turn < 2; turn += 1)
      await (await open(`postgres://app:secret@${host}/app`))[Symbol.asyncDispose]()
    emit.mockRestore()
    expect(warned).toEqual([expect.stringMatching(`^HOLDFAST_PASSWORD_IN_CLEAR .*${host} without TLS`)])
    expect(warned.join()).not.toContain('secret')
  })
})
