import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { satteri } from '@astrojs/markdown-satteri'
import { renderMermaidSVG } from 'beautiful-mermaid'
import { linkOf, ROOT } from './docs.ts'

type Plugin = NonNullable<NonNullable<NonNullable<Parameters<typeof satteri>[0]>['mdastPlugins']>[number]>

/** Links between files become links between pages, and diagrams become pictures. */
export const plugin: Plugin = {
  name: 'holdfast-docs',
  link(node, context) {
    if (!context.fileURL) return
    const url = linkOf(relative(ROOT, fileURLToPath(context.fileURL)), node.url)
    if (url === undefined) context.replaceNode(node, [...node.children])
    else if (url !== node.url) context.setProperty(node, 'url', url)
  },
  code(node) {
    if (node.lang !== 'mermaid') return
    return { raw: `<figure class="diagram scrolled">${diagram(node.value)}</figure>`, mdxExpressions: false }
  },
}

/** The colours are those of the page, light or dark. The font is as narrow as the one that the layout assumes. */
function diagram(text: string): string {
  const svg = renderMermaidSVG(text, {
    bg: 'var(--sl-color-bg)',
    fg: 'var(--sl-color-white)',
    line: 'var(--sl-color-gray-3)',
    muted: 'var(--sl-color-gray-2)',
    border: 'var(--sl-color-gray-4)',
    surface: 'var(--sl-color-gray-6)',
    font: 'Arial, Liberation Sans, Helvetica',
    padding: 16,
    transparent: true,
  })
  // Nothing is loaded from elsewhere. An empty line would end the block of HTML.
  return svg.replaceAll(/@import url\([^)]*\);?/g, '').replaceAll(/\n\s*\n/g, '\n')
}
