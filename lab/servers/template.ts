import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdtempSync, renameSync } from 'node:fs'
import { join } from 'node:path'

/** A program that fills a folder with the data of a new server. */
export interface Installer {
  readonly path: string
  /** The arguments; `folder` is the one to fill. */
  readonly args: (folder: string) => readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Who runs it and owns the data. @default the user of this process */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * Makes `folder`, with the data of a new server. If `HOLDFAST_TEMPLATES` names a folder, the program runs once for the same
 * arguments, and each later server gets a copy: that costs a tenth of the processor time.
 */
export function install(folder: string, installer: Installer): void {
  const templates = process.env.HOLDFAST_TEMPLATES
  if (!templates) {
    run(folder, installer)
    return
  }
  const { path, args, user } = installer
  const hash = createHash('sha256')
    .update(JSON.stringify([path, args(''), user]))
    .digest('hex')
  const template = join(templates, hash)
  if (!existsSync(template)) {
    chmodSync(templates, 0o711) // another user must find its own folder
    const made = mkdtempSync(join(templates, 'new-'))
    if (user) chownSync(made, user.uid, user.gid)
    run(made, installer)
    try {
      renameSync(made, template)
    } catch (error) {
      if (!existsSync(template)) throw error // else another process was faster
    }
  }
  execFileSync('cp', ['-a', template, folder])
}

function run(folder: string, { path, args, env, user }: Installer): void {
  execFileSync(path, args(folder), { ...user, cwd: '/', env: { ...process.env, ...env }, stdio: 'pipe' })
}
