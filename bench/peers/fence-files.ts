import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Build } from '../holdfast.ts'
import { HOLDER, keepsNoLeases, type Peer } from '../peer.ts'
import { Free } from './fence-objects.ts'

const BODY = 'a line'

export const peer: Peer = {
  ...keepsNoLeases,
  label: 'file, replaced and synced',
  over: 'files',
  async openWriter({ folder }) {
    const fence = (await new Build().fencingFiles()).fileFence()
    const replace = async (path: string): Promise<void> => {
      await write(`${path}.new`, BODY)
      await rename(`${path}.new`, path)
      await write(folder)
    }
    const files = new Free(count => join(folder, `file-${count}`))
    return {
      plain: () => files.use(replace),
      fenced: () => files.use(path => fence.write(HOLDER, path, BODY)),
      async close() {},
    }
  },
}

/** Without a text the folder is synced, so that names in it last. */
async function write(path: string, text?: string): Promise<void> {
  await using file = await open(path, text === undefined ? 'r' : 'w')
  if (text !== undefined) await file.writeFile(text)
  await file.sync()
}
