import { Comment, ReflectionKind } from 'typedoc'
import { ENTRIES } from '../script/entries.ts'
import { ENGINES } from '../src/engines.ts'

const entries = {
  ...Object.fromEntries(
    Object.entries(ENTRIES).map(([name, path]) => [name === 'index' ? 'holdfast' : `holdfast/${name}`, path]),
  ),
  'holdfast-lab/conformance': 'lab/conformance/index.ts',
}

/** The entry points by the names that TypeDoc gives them, which are those of their sources. */
const names = new Map(Object.entries(entries).map(([name, path]) => [path.replace(/(\/index)?\.ts$/, ''), name]))

const ABOUT = {
  holdfast: 'Locks and leases: what most programs import.',
  'holdfast/current-lease': 'The lease that surrounds the running code.',
  'holdfast/store': 'For authors of stores and wrappers.',
  ...Object.fromEntries(ENGINES.map(({ name }) => [`holdfast/${name}`, `The store \`${name}\`.`])),
  'holdfast/prometheus': 'Metrics for prom-client.',
  'holdfast/otel': 'Metrics and traces for OpenTelemetry.',
  'holdfast/dashboard': 'The dashboard, to mount it in a server of yours.',
  'holdfast/nestjs': 'The module for Nest.',
  'holdfast-lab/conformance': 'The tests that every store must pass.',
  'holdfast/testing': 'Kits for the tests of your code.',
}

/** Modules are called as users import them, and say what they are for. */
function rename({ converter }) {
  converter.on('resolveEnd', ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      module.name = names.get(module.name) ?? module.name
      const text = ABOUT[module.name] ?? `The fence \`${module.name.replace('holdfast/fencing/', '')}\`.`
      module.comment ??= new Comment([{ kind: 'text', text }])
    }
  })
}

export default {
  name: 'API',
  plugin: ['typedoc-plugin-markdown', rename],
  entryPoints: Object.values(entries).map(path => `../${path}`),
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
  indexFormat: 'table',
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
}
