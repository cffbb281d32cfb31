import { expect, test } from 'vitest'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import { System } from './test/system.ts'

test('a lease that ends while its record is read is shown, because a renewal of it may have been written meanwhile', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  await system.clock.advance(9_990)
  const { read } = system
  system.read = async key => {
    system.read = read
    const found = await read.call(system, key)
    expect((await one.renew(claim, signal))?.held).toBe(true)
    await system.clock.advance(10)
    return found
  }
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 10_000 }])
})
