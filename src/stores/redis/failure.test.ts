import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { LeaseError } from '../../contract/errors.ts'
import { failure, isReply } from './failure.ts'

const circumstances = { sent: true, served: false, isCluster: false }

// As Redis 7.0 and Valkey 8.0 say it, and valkey-glide in its own words.
const texts: Record<string, [code: string, retryable: boolean]> = {
  "READONLY You can't write against a read only replica.": ['STORE_UNAVAILABLE', false],
  'WRONGPASS invalid username-password pair or user is disabled.': ['ACCESS_DENIED', false],
  'NOAUTH Authentication required.': ['ACCESS_DENIED', false],
  'ERR AUTH <password> called without any password configured for the default user.': ['ACCESS_DENIED', false],
  'Password authentication failed- AuthenticationFailed: Invalid password': ['ACCESS_DENIED', false],
  "NOPERM this user has no permissions to run the 'evalsha' command": ['ACCESS_DENIED', false],
  "ERR The user executing the script can't run this command or subcommand": ['ACCESS_DENIED', false],
  "ACL failure in script: User app has no permissions to run the 'mget' command": ['ACCESS_DENIED', false],
  'An error was signalled by the server: - PermissionDenied: …': ['ACCESS_DENIED', false],
  'MOVED 3999 127.0.0.1:6381': ['INVALID_ARGUMENT', false],
  "CROSSSLOT Keys in request don't hash to the same slot": ['INVALID_ARGUMENT', false],
  "ERR unknown command 'evalsha', with args beginning with: ": ['STORE_UNAVAILABLE', false],
  'ERR This instance has cluster support disabled': ['INVALID_ARGUMENT', false],
  "Last error: ERR unknown command 'sentinel', with args beginning with: ": ['INVALID_ARGUMENT', false],
  'LOADING Redis is loading the dataset in memory': ['STORE_UNAVAILABLE', true],
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.': ['STORE_UNAVAILABLE', true],
  "OOM command not allowed when used memory > 'maxmemory'.": ['STORE_UNAVAILABLE', true],
  'MISCONF Redis is configured to save RDB snapshots, but …': ['STORE_UNAVAILABLE', true],
  'MASTERDOWN Link with MASTER is down': ['STORE_UNAVAILABLE', true],
  'CLUSTERDOWN Hash slot not served': ['STORE_UNAVAILABLE', true],
  'NOREPLICAS Not enough good replicas to write.': ['STORE_UNAVAILABLE', true],
  'ERR max number of clients reached': ['STORE_UNAVAILABLE', true],
  'ERR DB index is out of range': ['INVALID_ARGUMENT', false],
  'FORMAT 2': ['FORMAT_MISMATCH', false],
  'user_script:63: FORMAT ': ['STORE_UNAVAILABLE', false],
  'user_script:18: TOKEN 9007199254740992': ['STORE_UNAVAILABLE', false],
  'WRONGTYPE Operation against a key holding the wrong kind of value script: …': ['STORE_UNAVAILABLE', false],
  'Connection is closed.': ['OUTCOME_UNKNOWN', true],
  'Socket closed unexpectedly': ['OUTCOME_UNKNOWN', true],
  'read ECONNRESET': ['OUTCOME_UNKNOWN', true],
  'timed out': ['OUTCOME_UNKNOWN', true],
}

test.each(Object.entries(texts))('%s', (text, [code, retryable]) => {
  const error = failure(new Error(text), circumstances)
  expect(error).toMatchObject({ code, retryable })
  expect(isReply(new Error(text))).toBe(!/closed|RESET|timed/.test(text))
})

test('the outcome of a request that was not sent is known', () => {
  const error = failure(new Error('connect ECONNREFUSED'), { ...circumstances, sent: false })
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
})

test('S8: a server that served before and then refuses is in a failover, or has another password', () => {
  for (const text of ['READONLY …', 'MOVED 1 host:1'])
    expect(failure(new Error(text), { ...circumstances, served: true })).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    })
  expect(failure(new Error('MOVED 1 host:1'), { ...circumstances, isCluster: true })).toMatchObject({ retryable: true })
  for (const text of [
    'WRONGPASS …',
    'NOAUTH …',
    'ERR … cluster support disabled',
    'Password authentication failed- AuthenticationFailed',
  ])
    expect(failure(new Error(text), { ...circumstances, served: true })).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    })
  expect(failure(new Error('NOPERM …'), { ...circumstances, served: true })).toMatchObject({ retryable: false })
})

test('a first connection that fails says what to check', () => {
  const first = { ...circumstances, sent: false, isPlain: true }
  for (const text of ['write EPIPE', 'read ECONNRESET', 'Unknown RESP type 100 "d"'])
    expect(failure(new Error(text), first).message).toMatch('perhaps it is another server than Redis')
  const text = 'self-signed certificate in certificate chain'
  expect(failure(new Error(text), { ...first, isPlain: false }).message).toMatch('NODE_EXTRA_CA_CERTS')
})

test('the cause keeps the text and the code, not the command with its password', () => {
  const thrown = Object.assign(new Error('WRONGPASS invalid username-password pair'), {
    code: 'WRONGPASS',
    command: { name: 'auth', args: ['app', 'secret'] },
  })
  const error = failure(thrown, circumstances)
  expect(error.cause).toMatchObject({ message: thrown.message, code: 'WRONGPASS' })
  expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch('secret')
})

test('a failed connection to all addresses of a host says so', () => {
  const thrown = new AggregateError([
    new Error('connect ECONNREFUSED ::1:1'),
    new Error('connect ECONNREFUSED 127.0.0.1:1'),
  ])
  expect(failure(thrown, circumstances).message).toMatch('ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
})

test('our own errors pass unchanged', () => {
  const error = new LeaseError('CLOSED', 'the store is closed')
  expect(failure(error, circumstances)).toBe(error)
})
