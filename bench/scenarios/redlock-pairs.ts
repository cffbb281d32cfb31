import { rough, type Scenario } from '../scenario.ts'
import { scenario as pairs } from './pairs.ts'

export { work } from './pairs.ts'

export const scenario: Scenario = {
  ...pairs,
  title: 'Redlock: acquire and release by a majority of five, nobody else wants the name',
  about: 'As with one server; server CPU is that of all five. Holdfast tells in how many round trips it was granted.',
  servers: 5,
  variants: isQuick => pairs.variants(isQuick).filter(({ settings }) => !isQuick || settings.loops === 64),
  columns: [...pairs.columns, { title: 'in one round trip %', value: 'wonAtOnce', format: rough }],
}
