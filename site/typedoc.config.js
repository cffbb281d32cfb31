import { ReflectionKind } from 'typedoc'
import { ENTRIES } from '../script/entries.ts'

/** The entry points by the names that TypeDoc gives them, which are those of their sources. */
const names = new Map(
  Object.entries(ENTRIES).map(([name, path]) => [
    path.replace(/(\/index)?\.ts$/, ''),
    name === 'index' ? 'holdfast' : `holdfast/${name}`,
  ]),
)

/** Modules are called as users import them. */
function rename({ converter }) {
  converter.on('resolveEnd', ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module))
      module.name = names.get(module.name) ?? module.name
  })
}

export default {
  plugin: ['typedoc-plugin-markdown', rename],
  entryPoints: Object.values(ENTRIES).map(path => `../${path}`),
  basePath: '..',
  tsconfig: '../tsconfig.json',
  skipErrorChecking: true, // ./script/test checks the types
  validation: false,
  out: '.api',
  router: 'module',
  readme: 'none',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  disableSources: true,
  excludePrivate: true,
  excludeInternal: true,
  // Anchors that no heading has: TypeDoc counts equal names in another way than the site does.
  useHTMLAnchors: true,
  anchorPrefix: 'api-',
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
}
