export { prove } from './cli/prove.ts'
