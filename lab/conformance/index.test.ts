import { expect, test } from 'vitest'
import { memory } from '../../src/stores/memory/index.ts'
import { conformance, conformanceCases, excludedCases, type Harness, type Need } from './index.ts'

const why = 'it is all in this process'
const lacks: Partial<Record<Need, string>> = { close: why, cut: why, delay: why, stop: why, pause: why, jump: why }

function harness(changes: Partial<Harness> = {}): Harness {
  const store = memory()
  return { name: 'mine', open: async () => store, lacks, ...changes }
}

test('a harness that lacks a fault without a reason is refused', () => {
  expect(() => conformanceCases(harness({ lacks: { ...lacks, stop: undefined } }))).toThrow(
    /no faults.stop: add it, or give the reason in lacks.stop/,
  )
  expect(() => conformanceCases(harness({ faults: { pause: async () => async () => {} } }))).toThrow(/remove one/)
})

test('every case is run or excluded with its reason, and has a unique name', () => {
  const run = conformanceCases(harness())
  const excluded = excludedCases(harness())
  expect(excluded.length).toBeGreaterThan(10)
  for (const each of excluded) expect(each).toMatchObject({ why, need: expect.any(String) })
  const names = [...run, ...excluded].map(({ group, name }) => `${group}: ${name}`)
  expect(new Set(names).size).toBe(names.length)
  expect(excludedCases(harness({ lacks: { ...lacks, queue: 'no queue' } })).length).toBeGreaterThan(excluded.length)
})

test('a runner gets the concurrent cases first, then the cases that run alone', () => {
  const registered: string[] = []
  const register =
    (kind: string) =>
    (name: string): void =>
      void registered.push(`${kind} ${name}`)
  conformance(harness(), {
    describe: (name, body) => {
      registered.push(`begin ${name}`)
      body()
    },
    test: register('alone'),
    concurrent: register('beside'),
  })
  expect(registered[0]).toBe('begin mine')
  expect(registered[1]).toMatch(/^beside acquire: /)
  expect(registered.at(-1)).toMatch(/^alone /)
  expect(registered).toHaveLength(conformanceCases(harness()).length + 1)
})

test('a store fails if it promises what its harness lacks', async () => {
  const polled = harness({ lacks: { ...lacks, watch: 'it is polled' } })
  const promise = conformanceCases(polled).find(({ name }) => name === 'declares its kind and its guarantees')
  await expect(promise?.run()).rejects.toThrow(/lacks.watch and guarantees.waiting disagree/)
})

test('a store that breaks a promise fails', async () => {
  const forgetful = harness({
    open: async () => {
      const store = memory()
      return new Proxy(store, {
        get(target, key) {
          if (key === 'release') return async () => 'released'
          const value = target[key as keyof typeof target]
          return typeof value === 'function' ? value.bind(target as never) : value
        },
      })
    },
  })
  const frees = conformanceCases(forgetful).find(({ name }) => name.startsWith('R4: a release frees the name'))
  await expect(frees?.run()).rejects.toThrow(/strictly deep-equal/)
})
