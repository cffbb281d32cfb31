import { defineCollection } from 'astro:content'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { docsSchema } from '@astrojs/starlight/schema'
import type { Loader } from 'astro/loaders'
import { PAGES, parts, REPOSITORY, ROOT, read } from './docs.ts'
import { asked, weightOf } from './search.ts'

/** Reads the pages where they are. */
const loader: Loader = {
  name: 'holdfast-docs',
  async load({ store, parseData, renderMarkdown, watcher }) {
    const load = async (path: string, id: string): Promise<void> => {
      const { title, body } = parts(read(path))
      const editUrl = REPOSITORY && !path.startsWith('site/') ? `${REPOSITORY}/edit/main/${path}` : false
      const data = await parseData({ id, data: { title, editUrl, pagefind: weightOf(id) > 0 } })
      const rendered = await renderMarkdown(body, { fileURL: pathToFileURL(join(ROOT, path)) })
      // A wide table scrolls by itself, in a box.
      const html = rendered.html
        .replaceAll('<table>', '<div class="scrolled"><table>')
        .replaceAll('</table>', '</table></div>')
      rendered.html = `${asked(id)}<div data-pagefind-weight="${weightOf(id)}">${html}</div>`
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
