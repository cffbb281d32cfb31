import { mysqlHarness } from '../harnesses/mysql.ts'
import { differ } from './differ.ts'

// No transaction lasts longer than a statement, so a position is written after the read that refused the claim. R4 then says
// of a release beside an acquire of its claim only what holds once that has its answer: the core asks until it is `gone`.
differ(mysqlHarness(), { joinsLater: true })
