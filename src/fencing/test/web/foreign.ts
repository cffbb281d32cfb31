// Gives a file to another user, with set-user-id, and replaces it. Needs root, or a user namespace.
import { chmodSync, chownSync, statSync } from 'node:fs'
import { fileFence } from '../../files/index.ts'

const path = process.argv[2] as string
chownSync(path, 1, 1)
chmodSync(path, 0o4777)
await fileFence().write({ name: 'ledger', token: 1n }, path, 'after')
const { uid, mode } = statSync(path)
process.stdout.write(`${uid} ${(mode & 0o7777).toString(8)}`)
