import { fileURLToPath } from 'node:url'
import { invalid } from '../../contract/check.ts'
import { type OpenMarks, openMarksOf } from '../open.ts'
import { fileMarks } from './file-marks.ts'

/** Opens the marks of the files of a folder: `file:///FOLDER` or `file:PATH`. */
export function openMarks(url: string): OpenMarks {
  return openMarksOf(fileMarks(folderOf(url)), () => {})
}

/** The folder of a URL. `file:/…` is a URL with percent-encoding. Anything else after `file:` is a plain path. */
function folderOf(url: string): string {
  const path = url.slice('file:'.length)
  if (!path.startsWith('/')) return path
  try {
    return fileURLToPath(url)
  } catch (error) {
    throw invalid(`${url} is not a folder of this machine, such as file:///srv/exports: ${(error as Error).message}`)
  }
}
