import { closeSync, type Dirent, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { randomId } from '../../contract/random-id.ts'
import { assertNotEnded, type FenceCallOptions, signalOf } from '../fence.ts'
import { compareMarks, type Holder } from '../mark.ts'
import { MarksFile } from './marks-file.ts'
import { checkFileFence, type FileFenceOptions, fileFailure, type Place, placeOf, temporaryPrefix } from './place.ts'

/** The part of a temporary file's name after the prefix: epoch, token and random text. */
const TEMPORARY = /^(\d{1,10})-(\d{1,19})-[\da-f]{16}$/

/** The new content of a file. */
export type FileData = string | Uint8Array | AsyncIterable<string | Uint8Array>

/** Files that refuse older holders. */
export interface FileFence {
  /**
   * Replaces a file with `data`, unless a newer holder has written it. Readers never see a partial file. Once this call
   * has begun, no older holder can replace the file. The permissions of the file do not change, except that a file of
   * another user is replaced by one with mode 0600.
   *
   * It raises the mark, writes and syncs a temporary file in the same folder, and renames it while no other process can
   * raise the mark. A process that is paused while it raises a mark or renames blocks all other writers of these marks.
   *
   * @throws LeaseError STALE_TOKEN if a newer holder has written or touched the file; LEASE_LOST, MAX_HOLD or CLOSED if
   *   the lease has ended in this process, also just before the rename; STORE_UNAVAILABLE if the marks stayed locked for
   *   `wait` ms, or for an error of the file system; OUTCOME_UNKNOWN if the rename could not be synced; INVALID_ARGUMENT
   */
  write(lease: Holder, path: string, data: FileData, options?: FenceCallOptions): Promise<void>
  /**
   * Refuses all older holders from now on, without writing the file. Read the file after this: no older holder will
   * replace what you read.
   * @throws LeaseError as `write`
   */
  touch(lease: Holder, path: string, options?: FenceCallOptions): Promise<void>
}

/** A fence for the files of this machine. Throws `INVALID_ARGUMENT`. */
export function fileFence(options: FileFenceOptions = {}): FileFence {
  checkFileFence(options)
  return {
    write: async (lease, path, data, call) =>
      write(lease, placeOf(lease, path, options, signalOf(call, 'write')), data, options),
    async touch(lease, path, call) {
      const place = placeOf(lease, path, options, signalOf(call, 'touch'))
      using marks = new MarksFile(place.marks, options)
      await raise(marks, place)
    },
  }
}

async function write(lease: Holder, place: Place, data: FileData, options: FileFenceOptions): Promise<void> {
  if (typeof data !== 'string' && !(data instanceof Uint8Array) && !isIterable(data))
    throw invalid(`data must be text, a Uint8Array or an async iterable of them, not ${show(data)}`)
  const { key, mark, folder, wait, signal } = place
  const temporary = join(folder, `${temporaryPrefix(place)}${mark.epoch}-${mark.token}-${randomId().slice(0, 16)}`)
  using marks = new MarksFile(place.marks, options)
  let isReplaced = false
  try {
    await raise(marks, place)
    await writeSynced(temporary, data, place)
    // The folder is opened before the rename, so that after it only the sync can fail. Windows cannot sync a folder.
    using opened = process.platform === 'win32' ? undefined : new Folder(folder)
    const replace = (): void => {
      assertNotEnded(lease)
      renameSync(temporary, place.path)
      isReplaced = true
    }
    await marks.whenUnlocked(() => marks.whileHighest(key, mark, replace), wait, signal)
    opened?.sync()
  } catch (error) {
    if (isReplaced) throw notDurable(error, place.path)
    remove(temporary)
    signal?.throwIfAborted()
    throw fileFailure(error, place.path)
  }
}

async function raise(marks: MarksFile, place: Place): Promise<void> {
  const { key, mark, wait, signal } = place
  if (await marks.whenUnlocked(() => marks.raise(key, mark), wait, signal)) sweep(place)
}

/** Deletes temporary files of older holders that were killed. Those holders are refused now, so nobody needs the files. */
function sweep(place: Place): void {
  const prefix = temporaryPrefix(place)
  for (const entry of entriesOf(place.folder)) {
    const { name } = entry
    if (!entry.isFile() || !name.startsWith(prefix)) continue
    const [, epoch, token] = TEMPORARY.exec(name.slice(prefix.length)) ?? []
    if (epoch === undefined || token === undefined) continue // the file is not ours
    if (compareMarks({ epoch: Number(epoch), token: BigInt(token) }, place.mark) < 0) remove(join(place.folder, name))
  }
}

/** The entries of a folder. One that cannot be listed has none: the mark is raised by now, so a touch has succeeded. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

/** Removes a file. In a folder with the sticky bit, another user's file stays. That must not fail a write, or hide why. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The file may stay: its writer is refused anyway.
  }
}

async function writeSynced(path: string, data: FileData, { mode, signal }: Place): Promise<void> {
  await using file = await open(path, 'wx', mode) // the file is never readable by more users than the one it replaces
  await file.writeFile(data, { signal })
  if (mode !== undefined) await file.chmod(mode)
  await file.sync()
}

class Folder implements Disposable {
  readonly #descriptor: number

  constructor(path: string) {
    this.#descriptor = openSync(path, 'r')
  }

  /** Makes a rename in the folder survive a power failure. */
  sync(): void {
    fsyncSync(this.#descriptor)
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }
}

function notDurable(error: unknown, path: string): LeaseError {
  const problem = `${show(path)} was replaced, but a power failure may undo that: write it again`
  return new LeaseError('OUTCOME_UNKNOWN', `${problem} (${(error as Error).message})`, { cause: error })
}

function isIterable(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}
