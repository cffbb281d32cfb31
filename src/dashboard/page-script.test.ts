import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test, vi } from 'vitest'
import { SCRIPT } from './page-script.ts'

/** Runs the script in a page whose elements hold what is put into them. Returns the element of an id. */
function opened(fetch: typeof globalThis.fetch, pathname = '/locks'): (id: string) => { textContent: string } {
  const elements = new Map<string, { textContent: string }>()
  const element = (id: string): { textContent: string } => {
    const known = elements.get(id) ?? { textContent: '' }
    elements.set(id, known)
    return known
  }
  runInNewContext(SCRIPT, {
    ...{ fetch, setTimeout, clearTimeout, performance, AbortController, URLSearchParams, TextDecoderStream, Error },
    document: { getElementById: element, body: {} },
    location: { search: '?token=t', origin: 'http://here', pathname, hash: '' },
    history: { replaceState: () => {} },
    addEventListener: () => {},
  })
  return element
}

test('a stream that is silent for 10 s counts as gone, and another one is asked for', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const asked = vi.fn<typeof fetch>(async (_, init) => {
    const { signal } = init as { signal: AbortSignal }
    return new Response(
      new ReadableStream({
        start: controller => signal.addEventListener('abort', () => controller.error(signal.reason)),
      }),
    )
  })
  const element = opened(asked)
  await vi.advanceTimersByTimeAsync(9_000)
  expect([asked.mock.calls.length, element('state').textContent]).toEqual([1, ''])
  await vi.advanceTimersByTimeAsync(1_500)
  expect([element('say').textContent, element('why').textContent]).toEqual([
    'Not connected to the dashboard',
    'nothing came for 10 s',
  ])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked).toHaveBeenCalledTimes(2)
})

test('a path that begins with // leads to the server of the page', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const asked = vi.fn<typeof fetch>(() => new Promise(() => {}))
  opened(asked, '//evil.example/')
  expect(asked.mock.calls[0]?.[0]).toBe('http://here//evil.example/?api=events')
})
