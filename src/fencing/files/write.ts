import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { invalid, show } from '../../contract/check.ts'
import { assertNotOver } from '../fence.ts'
import { compareMarks, type Holder } from '../mark.ts'
import { MarksFile } from './marks-file.ts'
import { type FileFenceOptions, fileFailure, type Place, placeOf, temporaryPrefix } from './place.ts'

/** Lineage, token and random text, which follow the prefix in the name of a temporary file. */
const TEMPORARY = /^(\d{1,10})-(\d{1,19})-[\da-f]{16}$/

/** What a file can be made of. */
export type FileData = string | Uint8Array | AsyncIterable<string | Uint8Array>

/**
 * Replaces a file of this machine by `data`, or refuses: nobody sees half of it, and no older holder replaces it once
 * this one has begun. It raises the mark, writes and syncs a temporary file beside it, and renames that while no other
 * process can raise the mark. The mode of the file stays.
 *
 * A process that is stopped in the moment in which it raises a mark or renames keeps all others from these marks.
 *
 * @throws LeaseError STALE_TOKEN if a newer holder has written or touched; LEASE_LOST, MAX_HOLD or CLOSED if the lease is
 *   over in this process, also just before the rename; STORE_UNAVAILABLE if others did not let it
 *   within `wait`, or for what the system says; INVALID_ARGUMENT
 */
export async function fencedWrite(
  path: string,
  data: FileData,
  lease: Holder,
  options: FileFenceOptions = {},
): Promise<void> {
  const place = placeOf(path, lease, options)
  if (typeof data !== 'string' && !(data instanceof Uint8Array) && !isIterable(data))
    throw invalid(`a file is made of text, a Uint8Array or an async iterable of them, not ${show(data)}`)
  const { key, mark, folder, wait, signal } = place
  const temporary = join(folder, `${temporaryPrefix(place)}${mark.lineage}-${mark.token}-${randomName()}`)
  using marks = new MarksFile(place.marks)
  try {
    await raise(marks, place)
    await writeSynced(temporary, data, place)
    const replace = (): void => {
      assertNotOver(lease)
      renameSync(temporary, place.path)
    }
    await marks.patiently(() => marks.whileHighest(key, mark, replace), wait, signal)
    syncFolder(folder)
  } catch (error) {
    rmSync(temporary, { force: true })
    signal?.throwIfAborted()
    throw fileFailure(error, place.path)
  }
}

/**
 * Refuses all older holders from now on, before the first write: after this, what is read is what no older holder will
 * replace.
 * @throws LeaseError as `fencedWrite`
 */
export async function fencedTouch(path: string, lease: Holder, options: FileFenceOptions = {}): Promise<void> {
  const place = placeOf(path, lease, options)
  using marks = new MarksFile(place.marks)
  await raise(marks, place)
}

async function raise(marks: MarksFile, place: Place): Promise<void> {
  const { key, mark, wait, signal } = place
  if (await marks.patiently(() => marks.raise(key, mark), wait, signal)) sweep(place)
}

/** What older holders left, who were killed while they wrote: they are refused now, so that nobody renames it. */
function sweep(place: Place): void {
  const prefix = temporaryPrefix(place)
  for (const name of readdirSync(place.folder)) {
    if (!name.startsWith(prefix)) continue
    const [, lineage, token] = TEMPORARY.exec(name.slice(prefix.length)) ?? []
    if (lineage === undefined || token === undefined) continue // somebody else's
    if (compareMarks({ lineage: Number(lineage), token: BigInt(token) }, place.mark) < 0)
      rmSync(join(place.folder, name), { force: true })
  }
}

async function writeSynced(path: string, data: FileData, { mode, signal }: Place): Promise<void> {
  await using file = await open(path, 'wx', mode) // never readable by more than may read what it replaces
  await file.writeFile(data, { signal })
  if (mode !== undefined) await file.chmod(mode)
  await file.sync()
}

/** So that the new name survives a power failure. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function isIterable(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}

function randomName(): string {
  return randomBytes(8).toString('hex')
}
