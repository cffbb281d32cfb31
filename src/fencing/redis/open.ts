import { clientAt } from '../../stores/redis/open.ts'
import { type OpenMarks, openMarksOf } from '../open.ts'
import { redisFence } from './index.ts'

/** Opens the marks on the server that a URL names. */
export function openMarks(url: string): OpenMarks {
  const { client, prefix } = clientAt(url)
  const fence = redisFence(client, { prefix })
  return openMarksOf(fence.marks, () => fence.close())
}
