import { rough, type Scenario } from '../scenario.ts'
import { scenario as pairs } from './pairs.ts'

export { work } from './pairs.ts'

export const scenario: Scenario = {
  ...pairs,
  title: 'Redlock: acquire and release without contention, five servers',
  about:
    'As with one server. Server CPU is that of all five. Holdfast also reports how many grants needed one round trip.',
  servers: 5,
  variants: isQuick => pairs.variants(isQuick).filter(({ settings }) => !isQuick || settings.loops === 64),
  columns: [...pairs.columns, { title: 'in one round trip %', value: 'wonAtOnce', format: rough }],
}
