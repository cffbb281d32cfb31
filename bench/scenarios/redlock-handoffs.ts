import { rough, type Scenario } from '../scenario.ts'
import { scenario as handoffs } from './handoffs.ts'

export { work } from './handoffs.ts'

export const scenario: Scenario = {
  ...handoffs,
  title: 'Redlock: 32 waiters in two processes, one name, five servers',
  about:
    'As with one server. Requests are those to all five. Holdfast also reports how often votes split, so that nobody had a ' +
    'majority, and how many grants needed one round trip.',
  servers: 5,
  columns: [
    ...handoffs.columns,
    { title: 'split votes each', value: 'split', format: rough },
    { title: 'in one round trip %', value: 'wonAtOnce', format: rough },
  ],
}
