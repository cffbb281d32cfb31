import { expect, test } from 'vitest'
import { readPemFile } from './pem.ts'

test('a key that was given in the place of its path is not repeated', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nS3cr3t\n-----END PRIVATE KEY-----'
  expect(() => readPemFile('key', key, 'etcd')).toThrow('give the path of a file, not its text')
})
