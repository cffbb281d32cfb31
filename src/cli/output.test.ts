import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mask } from './output.ts'

test.each([
  ['redis://user:secret@host:6379/0', 'redis://user:***@host:6379/0'],
  ['rediss://:secret@host', 'rediss://:***@host'],
  ['cannot reach "redis://u:p@ss/w:rd@host", sorry', 'cannot reach "redis://u:***@host", sorry'],
  ['redis://host:6379/0?prefix=jobs', 'redis://host:6379/0?prefix=jobs'],
  ['store sqlite:/home/me@work/leases.db', 'store sqlite:/home/me@work/leases.db'],
])('%s is shown as %s', (text, shown) => {
  expect(mask(text)).toBe(shown)
})

test('no password of a URL is shown, whatever it is made of', () => {
  const password = fc.string({ minLength: 8 }).filter(text => /^[^\s@:/*]+$/.test(text))
  fc.assert(
    fc.property(password, fc.constantFrom('', '@', '/', ':'), (secret, odd) => {
      expect(mask(`refused by redis://user:${odd}${secret}@host:1/2 again`)).toBe(
        'refused by redis://user:***@host:1/2 again',
      )
    }),
  )
})
