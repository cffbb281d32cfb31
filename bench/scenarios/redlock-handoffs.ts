import { rough, type Scenario } from '../scenario.ts'
import { scenario as handoffs } from './handoffs.ts'

export { work } from './handoffs.ts'

export const scenario: Scenario = {
  ...handoffs,
  title: 'Redlock: 32 waiters in two processes, one name at a majority of five',
  about:
    'As with one server; requests are those to all five. Holdfast tells how often the votes were split, so that nobody ' +
    'had a majority, and in how many round trips it was granted.',
  servers: 5,
  columns: [
    ...handoffs.columns,
    { title: 'split votes each', value: 'split', format: rough },
    { title: 'in one round trip %', value: 'wonAtOnce', format: rough },
  ],
}
