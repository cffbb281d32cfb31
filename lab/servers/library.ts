import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { findBinary, UNPACKED } from './binary.ts'
import { newFolder } from './folder.ts'

// An installed package must not write to its own folder, so each process compiles the library for itself.
const TOOLS = import.meta.url.endsWith('.ts') ? join(import.meta.dirname, '../../.tools') : undefined

/**
 * Compiles `NAME.c` to a library for LD_PRELOAD, once per version of the source. Returns its path. The rename makes it
 * appear complete to other processes.
 */
export function buildLibrary(name: string): string {
  const source = join(import.meta.dirname, `${name}.c`)
  const folder = TOOLS ?? newFolder('library')
  const version = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 12)
  const library = join(folder, `${name}-${process.arch}-${version}.so`)
  if (existsSync(library)) return library
  mkdirSync(folder, { recursive: true })
  const unfinished = `${library}.${process.pid}`
  const { path, args } = findCompiler()
  // Every program that loads it has the functions that it calls.
  execFileSync(path, [...args, '-shared', '-fPIC', '-nostdlib', '-o', unfinished, source], { stdio: 'pipe' })
  renameSync(unfinished, library)
  return library
}

/** The machine's C compiler, or the small one that `script/setup` unpacks with the headers if it is not root. */
function findCompiler(): { path: string; args: string[] } {
  try {
    return { path: findBinary('cc', 'gcc libc6-dev').path, args: [] }
  } catch (missing) {
    const path = join(UNPACKED, 'bin/tcc')
    if (!existsSync(path)) throw missing
    const triplet = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`
    const headers = ['include', `include/${triplet}`, `lib/${triplet}/tcc/include`]
    return { path, args: ['-nostdinc', ...headers.map(folder => `-I${join(UNPACKED, folder)}`)] }
  }
}
