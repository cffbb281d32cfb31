import { satteri } from '@astrojs/markdown-satteri'
import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'
import { REPOSITORY, sections } from './src/docs.ts'
import { plugin } from './src/markdown.ts'

/** Long lists that few need begin closed. */
const CLOSED = ['Project', 'API']

export default defineConfig({
  markdown: { processor: satteri({ mdastPlugins: [plugin], features: { smartPunctuation: false } }) },
  integrations: [
    starlight({
      title: 'Holdfast',
      description: 'A distributed lock library for TypeScript',
      customCss: ['./src/site.css'],
      credits: false,
      // Nothing is cut at any width: a long line goes on below itself.
      expressiveCode: { defaultProps: { wrap: true, hangingIndent: 2, frame: 'none' } },
      pagefind: { ranking: { metaWeights: { title: 5, asked: 5 } } },
      markdown: { processedDirs: ['../docs'] },
      social: REPOSITORY ? [{ icon: 'github', label: 'Repository', href: REPOSITORY }] : [],
      sidebar: sections().map(({ label, pages }) => ({
        label,
        collapsed: CLOSED.includes(label),
        items: pages.map(page => ({ label: page.label, slug: page.address })),
      })),
    }),
  ],
})
