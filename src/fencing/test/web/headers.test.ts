import fc from 'fast-check'
import { expect, test } from 'vitest'
import { failureOf } from '../../../../test/support.ts'
import { checkName } from '../../../contract/check.ts'
import { checkFence, fenceHeaders, type Holder, type Mark, memoryMarks, throwIfStale } from '../../http/index.ts'

const lease = { name: 'invoices', token: 1763700000000001n }

test('a lease is presented by its token in decimal and its name as a string', () => {
  expect(fenceHeaders(lease)).toEqual({ 'Fencing-Token': '1763700000000001', 'Fencing-Resource': '"invoices"' })
  expect(fenceHeaders(lease, { resource: 'Büro "7" 100%', epoch: 2 })).toEqual({
    'Fencing-Token': '1763700000000001',
    'Fencing-Resource': '%"B%c3%bcro %227%22 100%25"',
    'Fencing-Epoch': '2',
  })
})

test('a permit is presented with its limit and slots, and read as it was', async () => {
  const shown = { name: 'api', token: 33n, limit: 5, slots: [0, 2] }
  const headers = fenceHeaders(shown)
  expect(headers).toEqual({ 'Fencing-Token': '33/5:0+2', 'Fencing-Resource': '"api"' })
  expect(await checkFence(new Headers(headers), memoryMarks())).toEqual({ fence: { ...shown, epoch: 0 } })
  expect(fenceHeaders({ name: 'api', token: '33/5:0+2' })).toEqual(headers)
  expect(fenceHeaders({ name: 'api', token: 33n, limit: 1, slots: [0] })['Fencing-Token']).toBe('33')
})

test('requests with permits of different slots are accepted, a stale one and a stale writer are not', async () => {
  const marks = memoryMarks()
  const statusOf = async (token: string): Promise<number | undefined> =>
    (await checkFence({ 'fencing-token': token, 'fencing-resource': '"a"' }, marks)).problem?.status
  for (const token of ['7/3:0', '6/3:1', '7/3:0', '8/2147483647:3', '5/2147483647:3'])
    expect([token, await statusOf(token)]).toEqual([token, undefined])
  for (const token of ['6/3:0', '6/3:0+2', '7']) expect([token, await statusOf(token)]).toEqual([token, 412])
  expect([await statusOf('9'), await statusOf('8/3:2'), await statusOf('8/2147483647:1')]).toEqual([
    undefined,
    412,
    412,
  ])
})

function isName(text: string): boolean {
  try {
    checkName(text)
    return true
  } catch {
    return false
  }
}

test('any name of a lease arrives unchanged, with the headers of Fetch and of Node', async () => {
  const names = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }).filter(isName)
  await fc.assert(
    fc.asyncProperty(names, fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), fc.nat(9), async (name, token, epoch) => {
      const headers = new Headers(fenceHeaders({ name, token }, { epoch }))
      const expected = { fence: { name, token, epoch } }
      expect(await checkFence(headers, memoryMarks())).toEqual(expected)
      expect(await checkFence(Object.fromEntries(headers), memoryMarks())).toEqual(expected)
    }),
  )
})

const good = { 'fencing-token': '7', 'fencing-resource': '"a"' }

test.each<[string, Record<string, string | string[]>, RegExp]>([
  ['no number', { ...good, 'fencing-token': 'seven' }, /Fencing-Token must be one decimal number/],
  ['nothing', { ...good, 'fencing-token': '' }, /Fencing-Token/],
  ['a sign', { ...good, 'fencing-token': '+7' }, /Fencing-Token/],
  ['a leading zero', { ...good, 'fencing-token': '07' }, /Fencing-Token/],
  ['a fraction', { ...good, 'fencing-token': '7.0' }, /Fencing-Token/],
  ['hexadecimal', { ...good, 'fencing-token': '0x7' }, /Fencing-Token/],
  ['a parameter', { ...good, 'fencing-token': '7;epoch=2' }, /Fencing-Token/],
  ['two tokens in one header', { ...good, 'fencing-token': '7, 8' }, /Fencing-Token/],
  ['two headers with tokens', { ...good, 'fencing-token': ['7', '8'] }, /Fencing-Token/],
  ['a permit without slots', { ...good, 'fencing-token': '7/3' }, /Fencing-Token .*such as 33\/5:0\+2/],
  ['a slot at the limit', { ...good, 'fencing-token': '7/3:3' }, /Fencing-Token/],
  ['two permits in one header', { ...good, 'fencing-token': '7/3:0,8/3:1' }, /Fencing-Token/],
  ['a limit of 2^31', { ...good, 'fencing-token': '7/2147483648:0' }, /Fencing-Token/],
  [
    '65 slots',
    { ...good, 'fencing-token': `7/99:${[...Array.from({ length: 65 }).keys()].join('+')}` },
    /Fencing-Token/,
  ],
  ['a token above 2^63', { ...good, 'fencing-token': '9223372036854775808' }, /2\^63/],
  ['a token of 400 digits', { ...good, 'fencing-token': '9'.repeat(400) }, /Fencing-Token/],
  ['a resource and no token', { 'fencing-resource': '"a"' }, /Fencing-Token .*is missing/],
  ['an epoch and no token', { 'fencing-resource': '"a"', 'fencing-epoch': '1' }, /Fencing-Token .*is missing/],
  ['a token and no resource', { 'fencing-token': '7' }, /Fencing-Resource is missing/],
  ['a resource without quotes', { ...good, 'fencing-resource': 'a' }, /Fencing-Resource must be one string/],
  ['two resources', { ...good, 'fencing-resource': '"a", "b"' }, /Fencing-Resource must be one string/],
  ['an empty resource', { ...good, 'fencing-resource': '""' }, /resource is empty/],
  ['a resource that is too long', { ...good, 'fencing-resource': `"${'a'.repeat(256)}"` }, /256 bytes/],
  ['a resource with a control character', { ...good, 'fencing-resource': '%"a%0a"' }, /control character/],
  ['a resource that is not UTF-8', { ...good, 'fencing-resource': '%"%ff"' }, /Fencing-Resource must be one string/],
  ['a resource in upper case hexadecimal', { ...good, 'fencing-resource': '%"%C3%BC"' }, /Fencing-Resource must/],
  ['an escape that there is not', { ...good, 'fencing-resource': '"\\n"' }, /Fencing-Resource must be one string/],
  ['a negative epoch', { ...good, 'fencing-epoch': '-1' }, /Fencing-Epoch/],
  ['an epoch above 2^31', { ...good, 'fencing-epoch': '2147483648' }, /epoch/],
])('%s is malformed', async (_, headers, detail) => {
  const { problem } = await checkFence(headers, memoryMarks())
  expect(problem).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT', detail: expect.stringMatching(detail) })
})

test('a token for another resource is refused, because the two cannot be compared', async () => {
  const { problem } = await checkFence(good, memoryMarks(), { resource: 'b' })
  expect(problem).toMatchObject({ status: 400, detail: expect.stringContaining('"b"') })
  expect(await checkFence({ 'fencing-token': '7' }, memoryMarks(), { resource: 'b' })).toMatchObject({
    fence: { name: 'b', token: 7n },
  })
})

test('a request without a token is refused only if one is required', async () => {
  expect(await checkFence({}, memoryMarks())).toMatchObject({ problem: { status: 428 } })
  expect(await checkFence({}, memoryMarks(), { required: false })).toEqual({})
})

test('a mark never falls: neither by a lower token nor by a lower epoch with a higher token', async () => {
  const marks = memoryMarks()
  const check = async (token: bigint, epoch: number): Promise<number> =>
    (await checkFence(fenceHeaders({ name: 'a', token }, { epoch }), marks))?.problem?.status as unknown as number
  expect([await check(7n, 0), await check(7n, 0), await check(6n, 0)]).toEqual([undefined, undefined, 412])
  expect([await check(3n, 1), await check(99n, 0), await check(3n, 1)]).toEqual([undefined, 412, undefined])
})

test('other rejections of the marks are not answers to the client', async () => {
  const marks = { raise: () => Promise.reject(new Error('the disk is gone')) }
  await expect(checkFence(good, marks)).rejects.toThrow('the disk is gone')
})

test.each<[string, unknown, object]>([
  ['no name', { name: '', token: 1n }, {}],
  ['a name with a line break', { name: 'a\n', token: 1n }, {}],
  ['a token that is a number', { name: 'a', token: 1 }, {}],
  ['a negative token', { name: 'a', token: -1n }, {}],
  ['a token of 2^63', { name: 'a', token: 2n ** 63n }, {}],
  ['a negative epoch', { name: 'a', token: 1n }, { epoch: -1 }],
  ['half an epoch', { name: 'a', token: 1n }, { epoch: 0.5 }],
  ['an option that nobody knows', { name: 'a', token: 1n }, { resurce: 'b' }],
  ['no lease', undefined, {}],
])('a client that would show %s is told at once', (_, holder, options) => {
  expect(() => fenceHeaders(holder as Holder, options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('throwIfStale leaves any other response, including another 412, unread', async () => {
  const json = { 'content-type': 'application/problem+json' }
  const responses = [
    new Response('precondition', { status: 412 }),
    new Response('{"code":"OTHER"}', { status: 412, headers: json }),
    new Response('null', { status: 412, headers: json }),
    new Response('{"code":"STALE_TOKEN"}', { status: 200, headers: json }),
  ]
  for (const response of responses) {
    await throwIfStale(response)
    expect(response.bodyUsed).toBe(false)
  }
})

test('a refusal becomes STALE_TOKEN with both tokens, also above the integers of JSON', async () => {
  const body = JSON.stringify({
    code: 'STALE_TOKEN',
    detail: 'stop',
    token: '9007199254740993',
    highest: '9007199254740995',
  })
  const response = new Response(body, { status: 412, headers: { 'content-type': 'application/problem+json' } })
  const error = await failureOf(throwIfStale(response))
  expect(error).toMatchObject({ code: 'STALE_TOKEN', token: 9007199254740993n, highest: 9007199254740995n })
})

test('a refusal with a huge token, a huge body or control characters costs nothing and shows nothing', async () => {
  const answer = (body: string): Response =>
    new Response(body, { status: 412, headers: { 'content-type': 'application/problem+json' } })
  const problem = { code: 'STALE_TOKEN', detail: 'stop \u001b[2J', token: '1', highest: '2' }
  await throwIfStale(answer(JSON.stringify({ ...problem, token: '9'.repeat(60_000) })))
  const long = await failureOf(throwIfStale(answer(JSON.stringify({ ...problem, token: '9'.repeat(10_000_000) }))))
  expect(long.message).toBe('the answer is longer than 65536 bytes')
  expect((await failureOf(throwIfStale(answer(JSON.stringify(problem))))).message).toBe('stop \\u{1b}[2J')
})

test('L21: memoryMarks refuses resources beyond its limit, and forgets none', async () => {
  const limited = memoryMarks({ maxMarks: 2 })
  const mark = (token: bigint): Mark => ({ epoch: 0, token })
  await limited.raise('a', mark(7n))
  await limited.raise('b', mark(1n))
  await expect(limited.raise('c', mark(1n))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
  await expect(limited.raise('b', { ...mark(2n), limit: 3, slots: [0] })).rejects.toMatchObject({ retryable: false })
  await limited.raise('b', mark(2n))
  await expect(limited.raise('a', mark(6n))).rejects.toMatchObject({ code: 'STALE_TOKEN' })
  expect(() => memoryMarks({ maxMarks: 0 })).toThrow('maxMarks must be a number, 1 or more, not 0')
})
