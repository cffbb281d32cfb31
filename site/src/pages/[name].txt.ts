import { getCollection } from 'astro:content'
import { sections } from '../docs.ts'

/** llms.txt lists the pages, and llms-full.txt contains them. */
export function getStaticPaths(): object[] {
  return ['llms', 'llms-full'].map(name => ({ params: { name } }))
}

export async function GET({ params }: { params: { name: string } }): Promise<Response> {
  const entries = new Map((await getCollection('docs')).map(entry => [entry.id, entry]))
  const listed = sections().filter(({ label }) => label !== 'API')
  const lines = ['# Holdfast', '', '> A distributed lock library for TypeScript: leases with fencing tokens.', '']
  for (const { label, pages } of listed) {
    if (params.name === 'llms') lines.push(`## ${label}`, '')
    for (const page of pages) {
      const url = page.address === 'index' ? '/' : `/${page.address}/`
      if (params.name === 'llms') lines.push(`- [${page.label}](${url})`)
      else lines.push(`# ${page.label}`, entries.get(page.address)?.body ?? '')
    }
    lines.push('')
  }
  return new Response(lines.join('\n'))
}
