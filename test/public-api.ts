import { join } from 'node:path'
import { API, type Checker, NodeBuilderFlags, type Project, SymbolFlags, TypeFlags } from 'typescript/unstable/sync'

type TypeSymbol = ReturnType<Checker['getAliasedSymbol']>
type Type = ReturnType<Checker['getDeclaredTypeOfSymbol']>

/** What entry points export, with the members of interfaces, classes and object types, one a line. */
export function publicApi(root: string, entries: Readonly<Record<string, string>>): string {
  const api = new API({ cwd: root })
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()
    if (!project) throw new Error('tsconfig.json was not opened')
    const surface = new Surface(project)
    return Object.entries(entries)
      .map(([name, path]) => surface.report(name === 'index' ? 'holdfast' : `holdfast/${name}`, join(root, path)))
      .join('\n')
  } finally {
    api.close()
  }
}

class Surface {
  readonly #project: Project
  readonly #checker: Checker
  /** By symbol, the entry point that reports the members. */
  readonly #reported = new Map<number, string>()

  constructor(project: Project) {
    this.#project = project
    this.#checker = project.checker
  }

  report(entry: string, path: string): string {
    const file = this.#project.program.getSourceFile(path)
    const module = file && this.#checker.getSymbolAtLocation(file)
    if (!module) throw new Error(`the entry point ${path} is missing or exports nothing`)
    const lines = this.#checker
      .getExportsOfModule(module)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap(exported => {
        const isAlias = (exported.flags & SymbolFlags.Alias) !== 0
        return this.#lines(entry, exported.name, isAlias ? this.#checker.getAliasedSymbol(exported) : exported)
      })
    return [entry, ...lines, ''].join('\n')
  }

  #lines(entry: string, name: string, symbol: TypeSymbol): string[] {
    const value =
      symbol.flags & (SymbolFlags.Function | SymbolFlags.Variable) ? [`  ${name}: ${this.#typeOf(symbol)}`] : []
    const isType = symbol.flags & (SymbolFlags.Class | SymbolFlags.Interface | SymbolFlags.TypeAlias)
    if (!isType) return value
    const before = this.#reported.get(symbol.id)
    if (before !== undefined) return [...value, `  ${name}: see ${before}`]
    this.#reported.set(symbol.id, entry)
    return [...value, ...this.#declared(name, symbol)]
  }

  #declared(name: string, symbol: TypeSymbol): string[] {
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol)
    if (symbol.flags & SymbolFlags.Class) {
      const statics = this.#membersOf(this.#checker.getTypeOfSymbol(symbol)).map(member => `static ${member}`)
      return [`  class ${this.#show(type)}`, ...[...statics, ...this.#membersOf(type)].map(indented)]
    }
    if (symbol.flags & SymbolFlags.Interface)
      return [`  interface ${this.#show(type)}`, ...this.#membersOf(type).map(indented)]
    const members = type.flags & TypeFlags.Object ? this.#membersOf(type) : []
    if (members.length > 0) return [`  type ${name}`, ...members.map(indented)]
    return [`  type ${name} = ${this.#show(type, NodeBuilderFlags.InTypeAlias)}`]
  }

  #membersOf(type: Type | undefined): string[] {
    if (!type) return []
    return this.#checker
      .getPropertiesOfType(type)
      .filter(({ name, flags }) => !/^(__)?#/.test(name) && !(flags & SymbolFlags.Prototype))
      .map(member => `${nameOf(member)}${member.flags & SymbolFlags.Optional ? '?' : ''}: ${this.#typeOf(member)}`)
      .sort()
  }

  #typeOf(symbol: TypeSymbol): string {
    const type = this.#checker.getTypeOfSymbol(symbol)
    return type ? this.#show(type) : '?'
  }

  #show(type: Type, flags = 0): string {
    const text = this.#checker.typeToString(type, undefined, flags | NodeBuilderFlags.NoTruncation)
    return text.replace(/import\("[^"]*"\)\./g, '')
  }
}

/** A symbol such as `Symbol.asyncDispose` is called `__@asyncDispose@418`. */
function nameOf({ name }: TypeSymbol): string {
  return name.replace(/^__@(\w+)@\d+$/, '[Symbol.$1]')
}

function indented(line: string): string {
  return `    ${line}`
}
