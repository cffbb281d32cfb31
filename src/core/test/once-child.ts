import { once } from 'node:events'
import { connect } from '../../index.ts'

/** One process that runs a job once. It says `works`, and ends the job with the first line of its standard input. */
const [url = '', name = '', within = '', ttl = ''] = process.argv.slice(2)
const locks = await connect(url, { owner: 'child', ttl: Number(ttl) })
const outcome = await locks.once(name, { within: Number(within) }, async () => {
  process.stdout.write('works\n')
  const [line] = await once(process.stdin, 'data')
  if (`${line}` !== 'succeed\n') throw new Error(`the job was told to ${line}`)
})
process.stdout.write(`${JSON.stringify(outcome)}\n`)
process.stdin.destroy()
await locks.close()
