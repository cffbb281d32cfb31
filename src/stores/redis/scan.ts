import type { Wire } from './client.ts'

/**
 * Yields pages of the keys that match, in a cluster of one node after the other. Takes one request per thousand keys of the
 * database. A key may come twice: where another connection is used, the search begins anew, since a cursor is of its server.
 */
export async function* scan(
  run: (work: (wire: Wire) => Promise<unknown>) => Promise<unknown>,
  pattern: string,
): AsyncGenerator<string[], void> {
  let searched: Wire | undefined
  for (let node = 0, cursor = '0'; ; ) {
    const answer = await run(async wire => {
      if (wire !== searched) [searched, node, cursor] = [wire, 0, '0']
      return (await wire.masters())[node]?.(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'])
    })
    if (answer === undefined) return
    const [next, page] = answer as [unknown, unknown[]]
    cursor = String(next)
    if (cursor === '0') node += 1
    yield page.map(String)
  }
}
