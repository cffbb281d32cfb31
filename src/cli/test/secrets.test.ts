import { expect, test, vi } from 'vitest'
import { connect } from '../../index.ts'
import { Output } from '../output.ts'
import { storeUrl } from '../store-url.ts'

const SECRET = 'S3cr3tPw'

/** Unusable URLs, most of them with a typical mistake in the password. */
const URLS = `
redis://u:PW@127.0.0.1:1
redis://:PW@127.0.0.1:1
redis://u:PW@127.0.0.1:1/x
redis://u:PW@127.0.0.1:1?p=1
redis://u:PW@bad host
redis://u:PW/x@127.0.0.1
redis://u:PW#x@127.0.0.1
redis://u:PW?x@127.0.0.1
redis://PW@127.0.0.1:1
redis://u:PW@127.0.0.1:99999
redis:u:PW@h
redis:/u:PW@h
rediss://u:PW@127.0.0.1:1
redlock://u:PW@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3
redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?password=PW
redlock://127.0.0.1:1?pass=PW
redlock://u:PW@a b,c
postgres://u:PW@127.0.0.1:1/d
postgres://u:PW@127.0.0.1:1/a/b
postgres://u:PW%@127.0.0.1:1/d
postgres://u:PW@/d
postgres://u:PW@127.0.0.1:1/d?password=PW
postgres://127.0.0.1:1/d?direct=postgres://u:PW@h x
postgres://127.0.0.1:1/d?direct=redis://u:PW@h
postgres:u:PW@h
etcd://u:PW@127.0.0.1:1
etcd://PW@127.0.0.1:1
etcd://u:PW@a:b:c
etcd://u:PW@127.0.0.1:1/x
etcd://u:PW%@127.0.0.1
etcd://u:PW@127.0.0.1:1?x=1
etcd://u:a@PW@127.0.0.1:1
etcd://u:a/PW@127.0.0.1:1
etcd://u:a#PW@127.0.0.1:1
zookeeper://u:PW@127.0.0.1:1
zookeeper://PW@127.0.0.1:1
zookeeper://u:a@PW@127.0.0.1:1
zookeeper://u:a/PW@127.0.0.1:1
zookeeper://u:PW@a:b
zookeeper://u:a#PW@h
mysql://u:PW@h
u:PW@h
PW
memory:PW
memory://u:PW@x
sqlite://u:PW@x
`
  .trim()
  .split('\n')

test.each(URLS)('no message prints the password of %s', { timeout: 30_000 }, async shape => {
  const url = shape.replaceAll('PW', SECRET)
  const written: string[] = []
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation(text => written.push(String(text)) > 0)
  try {
    for (const output of [new Output(), new Output({ json: true })]) {
      try {
        const locks = await connect(storeUrl(url, output))
        try {
          await locks.inspect('a')
        } finally {
          await locks.close({ grace: 0 })
        }
      } catch (error) {
        output.fail(error)
      }
    }
  } finally {
    stderr.mockRestore()
  }
  expect(written.length).toBeGreaterThanOrEqual(2)
  expect(written.join('')).not.toContain(SECRET)
})
