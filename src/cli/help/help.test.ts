import { describe, expect, test } from 'vitest'
import { parseElect } from '../run/elect-options.ts'
import { parseRun } from '../run/run-options.ts'
import { COMMANDS, helpFor, optionsOf } from './help.ts'

const PARSERS = { run: parseRun, elect: parseElect }

describe.each([...COMMANDS])('the help on %s', (name, help) => {
  const text = helpFor(name)

  test('has lines of at most 120 characters', () => {
    expect(text.split('\n').filter(line => line.length > 120)).toEqual([])
  })

  test('gives values or a default for every option that takes a value', () => {
    const taking = help.options.filter(({ flags }) => / [A-Z[]/.test(flags))
    expect(taking.filter(option => !option.values && !option.default)).toEqual([])
  })

  test('describes each option in at most ten words', () => {
    expect(optionsOf(help).filter(option => option.text.split(' ').length > 10)).toEqual([])
  })
})

describe.each(Object.entries(PARSERS))('holdfast %s', (name, parse) => {
  const options = COMMANDS.get(name)?.options ?? []

  test.each(options.map(({ flags }) => /--[\w-]+/.exec(flags)?.[0]))('accepts %s, which its help lists', option => {
    // The value is wrong, so the command line is refused. The message must not be that the option is unknown.
    expect(errorOf(() => parse(['job', `${option}=?`, '--', 'true']))).not.toContain('has no option')
  })
})

function errorOf(call: () => unknown): string {
  try {
    call()
    return ''
  } catch (error) {
    return String(error)
  }
}
