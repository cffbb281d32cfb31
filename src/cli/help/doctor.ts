import type { CommandHelp } from './command-help.ts'

export const DOCTOR: CommandHelp = {
  usage: 'doctor [options]',
  entry: 'doctor',
  summary: 'Finds what makes leases unsafe or slow',
  text: [
    'Acquires and releases a name of its own, then checks the settings of the store. Prints problems and warnings with what to do, then what is ok. It changes no other name.',
    'docs/operations/doctor.md lists the findings of each store.',
  ],
  examples: [
    ['holdfast doctor --store redis://cache:6379'],
    ['holdfast doctor --quiet', 'problems only'],
    [`holdfast doctor --json | jq '.[] | select(.level != "ok")'`],
  ],
  options: [],
  exitCodes: [
    ['0', 'Nothing was found'],
    ['1', 'There are warnings'],
    ['2', 'There are problems; also: the store is not available'],
    ['64', 'Wrong usage'],
    ['69', 'The driver of the store is not available'],
  ],
}
