import type { Scenario } from '../scenario.ts'
import { scenario as handover } from './handover.ts'

export { work } from './handover.ts'

export const scenario: Scenario = {
  ...handover,
  title: 'Redlock: a leader is told to end, and the next one leads by a majority of five',
  about: 'As with one server; a round trip is a `SET` at all five, until a majority has answered.',
  servers: 5,
}
