import assert from 'node:assert/strict'
import type { Claim } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import { eachOf, until } from './timing.ts'

const ascii = `* ? [ab] [^a] % _ %25 %41 \\ \\* $1 { } {a} }{ {} {{}} : a:b :: / // . .. ../a a/b a/b/c ' " \` ";-- '' A # & = ?a=b
  0 -1 1e3 null undefined true __proto__ constructor toString`
const unicode = 'ä a\u0308 \u00c5 \u212b ß İ 中文 🔒 👩\u200d👩\u200d👧 \u2028 \u200b \ufeff \uffff \u{10ffff}'
const names = [...ascii.split(/\s+/), ...unicode.split(' '), ' ', '  ', ' a', 'a ']

/** Inspect, and names that are hard to store. */
export const inspectionCases: Case[] = casesOf(
  {},
  {
    async 'R11: shows nothing of a name that nobody holds'(space) {
      const client = await space.client()
      const name = space.name()
      assert.deepEqual(await client.inspect({ name }), [])
      assert.deepEqual(await client.inspect({ prefix: name }), [])
    },

    async 'R11: shows all details of a holder'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim({ note: 'the nightly run' })
      const { token } = await one.hold(claim)
      const records = await two.inspect({ name: claim.name })
      assert.equal(records.length, 1)
      const { name, state, owner, note, remaining, ...rest } = records[0] ?? assert.fail()
      assert.deepEqual({ name, state, owner, note }, { ...pick(claim), state: 'held' })
      assert.equal(rest.token, token)
      assert.ok(remaining > 0 && remaining <= 2 * claim.ttl, `${remaining} ms remain of ${claim.ttl}`)
    },

    async 'R11: shows no expired lease, even if nobody has asked for its name since'(space) {
      const client = await space.client()
      const prefix = space.name()
      const [brief, lasting] = [space.claim({ name: `${prefix}/a`, ttl: space.short }), space.claim({ name: prefix })]
      await client.hold(lasting)
      await client.hold(brief)
      await until('it is no longer shown', async () => (await client.inspect({ prefix })).length === 1)
      assert.deepEqual(await client.inspect({ name: brief.name }), [])
      assert.equal((await client.inspect({ prefix }))[0]?.name, prefix)
    },

    async 'R11: shows one name, or all names with a prefix'(space) {
      const client = await space.client()
      const a = space.name()
      const under = [`${a}/b`, `${a}/b/c`, `${a}:b`, `${a}b`].sort()
      const claims = [a, ...under, `before-${a}`].map(name => space.claim({ name }))
      await Promise.all(claims.map(claim => client.hold(claim)))
      const found = async (query: { name: string } | { prefix: string }): Promise<string[]> =>
        (await client.inspect(query)).map(({ name }) => name).sort()
      assert.deepEqual(await found({ name: a }), [a])
      assert.deepEqual(await found({ prefix: a }), [a, ...under])
      assert.deepEqual(await found({ prefix: `${a}/` }), [`${a}/b`, `${a}/b/c`])
      assert.deepEqual(await found({ prefix: `${a}/b` }), [`${a}/b`, `${a}/b/c`])
      assert.deepEqual(await found({ name: `${a}/` }), [])
      const all = await found({ prefix: '' })
      assert.ok([a, ...under].every(name => all.includes(name)))
    },

    async 'R11: accepts every valid character in names and prefixes'(space) {
      const client = await space.client()
      const base = space.name()
      const full = names.map(name => `${base}${name}`)
      const claims = [...full, ...names].map(name =>
        space.claim({ name, owner: `of ${name}`.slice(0, 60), note: name }),
      )
      const tokens = await eachOf(claims, async claim => (await client.hold(claim)).token)
      for (const [index, { name, owner, note }] of claims.entries()) {
        const records = await client.inspect({ name })
        assert.deepEqual(
          records.map(record => [record.name, record.owner, record.note, record.token]),
          [[name, owner, note, tokens[index]]],
        )
      }
      for (const prefix of full) {
        const found = (await client.inspect({ prefix })).map(({ name }) => name).sort()
        assert.deepEqual(found, full.filter(name => name.startsWith(prefix)).sort(), `prefix ${prefix}`)
      }
      const answers = await eachOf(claims, claim => client.release(claim))
      assert.ok(answers.every(answer => answer === 'released'))
      assert.deepEqual(await client.inspect({ prefix: base }), [])
    },

    async 'R11: accepts names, owners and notes of 255 bytes, and empty owners and notes'(space) {
      const client = await space.client()
      const longest = ['x', 'ü', '锁', '🔒'].map(character => fill(space.name('long'), character))
      longest.push(`${longest[0]?.slice(0, -1)}y`) // differs in its last byte only
      for (const name of longest) {
        const claim = space.claim({ name, owner: fill('', 'ö'), note: fill('', '"') })
        await client.hold(claim)
        const [record] = await client.inspect({ name })
        assert.deepEqual(record && pick(record), pick(claim))
        assert.equal((await client.inspect({ prefix: name })).length, 1)
        await client.isRefused(space.claim({ name, queue: true, owner: '', note: '' }))
      }
      const empty = space.claim({ owner: '', note: '' })
      await client.hold(empty)
      const [record] = await client.inspect({ name: empty.name })
      assert.deepEqual(record && pick(record), pick(empty))
    },

    async 'R11: shows each of 1,200 names once'(space) {
      const client = await space.client()
      const prefix = space.name()
      const claims = Array.from({ length: 1_200 }, (_, index) => space.claim({ name: `${prefix}/${index}` }))
      await eachOf(claims, claim => client.hold(claim))
      const records = await client.inspect({ prefix })
      assert.deepEqual(records.map(({ name }) => name).sort(), claims.map(({ name }) => name).sort())
    },
  },
)

function pick({ name, owner, note }: Pick<Claim, 'name' | 'owner' | 'note'>): object {
  return { name, owner, note }
}

/** `start`, repeated `character`s and dots: 255 bytes in total. */
function fill(start: string, character: string): string {
  const room = 255 - Buffer.byteLength(start)
  const bytes = Buffer.byteLength(character)
  return start + character.repeat(Math.floor(room / bytes)) + '.'.repeat(room % bytes)
}
