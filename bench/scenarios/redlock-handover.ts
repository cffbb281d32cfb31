import type { Scenario } from '../scenario.ts'
import { scenario as handover } from './handover.ts'

export { work } from './handover.ts'

export const scenario: Scenario = {
  ...handover,
  title: 'Redlock: handover of leadership, five servers',
  about: 'As with one server. A round trip is a `SET` at all five, until a majority has answered.',
  servers: 5,
}
