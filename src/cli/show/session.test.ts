import { expect, test } from 'vitest'
import { Session } from './session.ts'

const session = new Session()
const page = session.entrance.split('?')[0] ?? ''
const cookie = cookieOf(session)
const data = { cookie, 'sec-fetch-site': 'same-origin' }

function cookieOf(of: Session): string {
  return of.cookieFor(of.entrance)?.split(';')[0] ?? ''
}

function admits(target: string, headers: Record<string, string> = {}, method = 'GET'): boolean {
  return session.admits(new Request(`http://127.0.0.1:4000${target}`, { method, headers }))
}

test('the printed address opens the page, and its cookie then does', () => {
  expect(admits(session.entrance)).toBe(true)
  expect(session.cookieFor(session.entrance)).toMatch(
    /^holdfast=[\w-]{32}; Path=\/[\w-]{16}\/; HttpOnly; SameSite=Strict$/,
  )
  expect(admits(page, { cookie })).toBe(true)
  expect(admits(`${page}?api=events`, data)).toBe(true)
  expect(admits(`${page}?api=break`, data, 'POST')).toBe(true)
})

test('a cookie of the same name that another server set does not hide ours', () => {
  expect(admits(page, { cookie: `holdfast=evil; ${cookie}; other=1` })).toBe(true)
})

test.each<[string, string, Record<string, string>, string?]>([
  ['without a token', page, {}],
  ['with an empty token', `${page}?token=`, {}],
  ['with a wrong token', session.entrance.slice(0, -1), {}],
  ['with the token of another session', `${page}?${new Session().entrance.split('?')[1]}`, {}],
  ['with the token at another path', `/?${session.entrance.split('?')[1]}`, {}],
  ['with a wrong cookie', page, { cookie: `${cookie}x` }],
  ['with an empty cookie', page, { cookie: 'holdfast=' }],
  ['with the cookie of another session', page, { cookie: cookieOf(new Session()) }],
  ['with the cookie at another path', '/', { cookie }],
  ['for data with the token', `${session.entrance}&api=events`, { 'sec-fetch-site': 'same-origin' }],
  ['for data by a link', `${page}?api=events`, { cookie, 'sec-fetch-site': 'none' }],
  ['for data by another site', `${page}?api=events`, { cookie, 'sec-fetch-site': 'cross-site' }],
  ['for data by another port of this machine', `${page}?api=events`, { cookie, 'sec-fetch-site': 'same-site' }],
  ['for data by a browser that does not say who asks', `${page}?api=events`, { cookie }],
  ['for a change by another site', `${page}?api=break`, { cookie, 'sec-fetch-site': 'cross-site' }, 'POST'],
  ['for a change without a query', page, { cookie }, 'POST'],
])('a request %s is refused', (_, target, headers, method) => {
  expect(admits(target, headers, method)).toBe(false)
  expect(session.cookieFor(target)).toBeUndefined()
})

test('the token of the address opens the page, and changes nothing', () => {
  expect(admits(session.entrance, { 'sec-fetch-site': 'same-origin' }, 'POST')).toBe(false)
})
