import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mask, printable } from './output.ts'

test.each([
  ['redis://user:secret@host:6379/0', 'redis://user:***@host:6379/0'],
  ['rediss://:secret@host', 'rediss://:***@host'],
  ['cannot reach "redis://u:p@ss/w:rd@host", sorry', 'cannot reach "redis://u:***@host", sorry'],
  ['redis://me@tenant:secret@host', 'redis://me@tenant:***@host'],
  ['redlock://a:6379,b:6379?password=s@cret', 'redlock://a:***'],
  ['redlock://a:6379,b?username=u&password=s@cret&prefix=p', 'redlock://a:***&prefix=p'],
  [
    'open nats://t0ken@host:4222/bucket and natss://t0k@n@a,b/c',
    'open nats://***@host:4222/bucket and natss://***@a,b/c',
  ],
  ['nats://user:secret@host/bucket', 'nats://user:***@host/bucket'],
  ['redis://host:6379/0?prefix=jobs', 'redis://host:6379/0?prefix=jobs'],
  [
    'postgres://h/d?direct=postgres%3A%2F%2Fapp%3As3cret%40db%2Fd',
    'postgres://h/d?direct=postgres%3A%2F%2Fapp%3A***%40db%2Fd',
  ],
  ['postgres://u:x@h/d?a=b&direct=postgres://app:s%2540@db/d&c=d', 'postgres://u:***@db/d&c=d'],
  ['postgres://h/d?direct=postgres%3A%2F%2Fapp%3As3cr%et%40db', 'postgres://h/d?direct=***'],
  ['postgres://h/d?direct=postgres%3A%2F%2Fdb%2Fd&table=t', 'postgres://h/d?direct=postgres%3A%2F%2Fdb%2Fd&table=t'],
  ['store sqlite:/home/me@work/leases.db', 'store sqlite:/home/me@work/leases.db'],
  ['write mysql://[user:password@]host[:port]/database', 'write mysql://[user:password@]host[:port]/database'],
])('%s is shown as %s', (text, shown) => {
  expect(mask(text)).toBe(shown)
})

test('no password of a URL is shown, whatever its characters', () => {
  const password = fc.string({ minLength: 8 }).filter(text => /^[^\s@:/*]+$/.test(text))
  fc.assert(
    fc.property(password, fc.constantFrom('', '@', '/', ':'), (secret, odd) => {
      expect(mask(`refused by redis://user:${odd}${secret}@host:1/2 again`)).toBe(
        'refused by redis://user:***@host:1/2 again',
      )
    }),
  )
})

test.each([
  'a',
  'a://b:',
  'a://',
  'a://b@c:',
  '?password=',
  '&@',
  '#@',
  '?password=a://b:@',
  '?direct=',
  '%3Fdirect%3D?direct=',
])('M8: a million characters of %j are masked in linear time', unit => {
  mask(unit.repeat(1_000_000 / unit.length))
})

test('M7: control characters and invisible ones are escaped', () => {
  expect(printable('\u001b[2J\n\u009b\u202eab\u2066\u200b\u2028\u{e0041}')).toBe(
    '\\u{1b}[2J\\u{a}\\u{9b}\\u{202e}ab\\u{2066}\\u{200b}\\u{2028}\\u{e0041}',
  )
  expect(printable('Ünï 中文 ❤\ufe0f')).toBe('Ünï 中文 ❤\ufe0f')
})
