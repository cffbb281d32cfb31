import { writeFile } from 'node:fs/promises'
import { fileFence } from '../../files/index.ts'
import { fenceHeaders, throwIfStale } from '../../http/index.ts'
import type { Holder } from '../../mark.ts'
import { httpObjects, objectFence } from '../../objects/index.ts'

export type Kind = 'http' | 'objects' | 'files'
export type Write = (target: string, text: string, lease: Holder) => Promise<void>

async function put(url: string, text: string, headers: Record<string, string> = {}): Promise<Response> {
  const response = await fetch(url, { method: 'PUT', body: text, headers })
  await throwIfStale(response)
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  await response.arrayBuffer()
  return response
}

/** How each kind of resource is written to, with its fence and as one would without. */
export const writes: Readonly<Record<Kind, { readonly fenced: Write; readonly naive: Write }>> = {
  http: {
    fenced: async (url, text, lease) => void (await put(url, text, fenceHeaders(lease))),
    naive: async (url, text) => void (await put(url.replace('fenced', 'naive'), text)),
  },
  objects: {
    fenced: (url, text, lease) => objectFence(httpObjects()).put(lease, url, text),
    naive: async (url, text) => void (await put(url, text)),
  },
  files: {
    fenced: (path, text, lease) => fileFence().write(lease, path, text),
    naive: (path, text) => writeFile(path, text),
  },
}
