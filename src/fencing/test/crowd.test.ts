import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Pool } from 'pg'
import { newFolder } from '../../../lab/servers/folder.ts'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { sqliteFence } from '../sqlite/index.ts'
import { parse, sleep, testCrowds, write } from './crowd.ts'

testCrowds({
  async postgres() {
    const server = await startPostgres({ config: { fsync: 'off' } })
    const pool = new Pool({ connectionString: server.url(), max: 16 })
    pool.on('error', () => {}) // when it is killed
    await postgresFence(pool).install()
    await pool.query('create table log (id serial primary key, resource text, line text)')
    const text = 'insert into log (resource, line) values ($1, $2)'
    return {
      pace: 0.2,
      append: (resource, mark, pause) =>
        postgresFence(pool, { resource, epoch: mark.epoch }).transaction(
          { name: 'any', token: mark.token },
          async client => {
            await sleep(pause)
            await client.query({ text, values: [resource, write(mark)] })
          },
        ),
      async naive(resource, mark, pause) {
        await sleep(pause)
        await pool.query({ text, values: [resource, write(mark)] })
      },
      async read(resource) {
        const { rows } = await pool.query('select line from log where resource = $1 order by id', [resource])
        return rows.map(({ line }) => parse(line))
      },
      async restart() {
        await server.kill()
        await server.start()
      },
      async [Symbol.asyncDispose]() {
        await pool.end()
        await server.stop()
      },
    }
  },
  async mysql() {
    const server = await startMariaDb({ config: { innodb_flush_log_at_trx_commit: 2 } })
    const pool = createPool({ uri: server.url(), connectionLimit: 16 })
    await mysqlFence(pool).install()
    await pool.query('create table log (id int auto_increment primary key, resource varchar(99), line varchar(99))')
    const text = 'insert into log (resource, line) values (?, ?)'
    return {
      pace: 0.2,
      append: (resource, mark, pause) =>
        mysqlFence(pool, { resource, epoch: mark.epoch }).transaction(
          { name: 'any', token: mark.token },
          async connection => {
            await sleep(pause)
            await connection.query(text, [resource, write(mark)])
          },
        ),
      async naive(resource, mark, pause) {
        await sleep(pause)
        await pool.query(text, [resource, write(mark)])
      },
      async read(resource) {
        const query = 'select line from log where resource = ? order by id'
        const [rows] = await pool.query<RowDataPacket[]>(query, [resource])
        return rows.map(({ line }) => parse(line))
      },
      async restart() {
        await server.kill()
        await server.start()
      },
      async [Symbol.asyncDispose]() {
        await pool.end()
        await server.stop()
      },
    }
  },
  async sqlite() {
    const path = join(newFolder('crowd'), 'log.db')
    const databases = Array.from({ length: 4 }, () => new DatabaseSync(path))
    for (const database of databases) database.exec('pragma journal_mode = wal; pragma synchronous = off')
    const [first] = databases as [DatabaseSync]
    sqliteFence(first).install()
    first.exec('create table log (id integer primary key, resource text, line text)')
    const text = 'insert into log (resource, line) values (?, ?)'
    let turn = 0
    return {
      pace: 0.2,
      async append(resource, mark, pause) {
        await sleep(pause)
        const database = databases[turn++ % databases.length] as DatabaseSync
        const insert = database.prepare(text)
        const fence = sqliteFence(database, { resource, epoch: mark.epoch })
        fence.transaction({ name: 'any', token: mark.token }, () => insert.run(resource, write(mark)))
      },
      async naive(resource, mark, pause) {
        await sleep(pause)
        first.prepare(text).run(resource, write(mark))
      },
      async read(resource) {
        const rows = first.prepare('select line from log where resource = ? order by id').all(resource)
        return rows.map(({ line }) => parse(String(line)))
      },
      async [Symbol.asyncDispose]() {
        for (const database of databases) database.close()
      },
    }
  },
  async redis() {
    const server = await startRedis({ appendonly: 'always' })
    const client = new Redis(server.port)
    client.on('error', () => {}) // when it is killed
    const fences = [0, 1, 2, 3].map(epoch => redisFence(client, { epoch }))
    return {
      pace: 0.2,
      async append(resource, mark, pause) {
        await sleep(pause)
        const script = "return redis.call('rpush', KEYS[1], ARGV[1])"
        const holder = { name: resource, token: mark.token }
        await fences[mark.epoch]?.eval(holder, { script, keys: [resource], args: [write(mark)] })
      },
      async naive(resource, mark, pause) {
        await sleep(pause)
        await client.rpush(resource, write(mark))
      },
      read: async resource => (await client.lrange(resource, 0, -1)).map(parse),
      async restart() {
        await server.kill()
        await sleep(200) // a fence asks again at once, and would find it restarted
        await server.start()
      },
      async [Symbol.asyncDispose]() {
        for (const fence of fences) await fence.close()
        client.disconnect()
        await server.stop()
      },
    }
  },
})
