import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sqliteFence } from '../sqlite/index.ts'

// A process that is in the middle of a fenced transaction, and stays there.
const [path = '', token = ''] = process.argv.slice(2)
const database = new DatabaseSync(path)
database.exec('pragma cache_size = 10') // so that writes reach the file before the commit
sqliteFence(database).transaction({ name: 'ledger', token: BigInt(token) }, () => {
  database.exec(`with recursive number (n) as (select 1 union all select n + 1 from number where n < 500)
    insert into entry select ${token}, zeroblob(4000) from number`)
  writeSync(1, 'half\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
