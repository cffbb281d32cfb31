import { defineCollection } from 'astro:content'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { docsSchema } from '@astrojs/starlight/schema'
import type { Loader } from 'astro/loaders'
import { PAGES, parts, REPOSITORY, ROOT, read } from './docs.ts'

/** Pages of lists, of the project and of the API have every word, so they would hide the page that answers. */
const UNSEARCHED = /^(site|docs\/decisions)\/|^docs\/README|^(ARCHITECTURE|CONTRIBUTING|CHANGELOG|CODE_OF_CONDUCT)\./

/** Reads the pages where they are. */
const loader: Loader = {
  name: 'holdfast-docs',
  async load({ store, parseData, renderMarkdown, watcher }) {
    const load = async (path: string, id: string): Promise<void> => {
      const { title, body } = parts(read(path))
      const editUrl = REPOSITORY && !path.startsWith('site/') ? `${REPOSITORY}/edit/main/${path}` : false
      const data = await parseData({ id, data: { title, editUrl, pagefind: !UNSEARCHED.test(path) } })
      const rendered = await renderMarkdown(body, { fileURL: pathToFileURL(join(ROOT, path)) })
      const assetImports = rendered.metadata?.imagePaths ?? []
      store.set({ id, data, body, filePath: join('..', path), rendered, assetImports })
    }
    store.clear()
    for (const [path, id] of PAGES) await load(path, id)
    const pathOf = (file: string): string => file.slice(ROOT.length + 1)
    watcher?.add([...PAGES.keys()].map(path => join(ROOT, path)))
    watcher?.on('change', file => {
      const id = PAGES.get(pathOf(file))
      if (id !== undefined) void load(pathOf(file), id)
    })
  },
}

export const collections = { docs: defineCollection({ loader, schema: docsSchema() }) }
