# Sourced by the scripts in this folder: paths, and which Node to use.
# It must run in bash 3.2, the version of macOS.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.tools

# Sets `node` to the one that script/setup installed, else to the machine's if it is new enough. Sets `node_flags` to the
# options that it needs to run TypeScript without a warning.
find_node() {
  local version major minor
  node=$tools/node/bin/node
  [ -x "$node" ] || node=$(command -v node) || return 1
  version=$("$node" -v) || return 1
  IFS=. read -r major minor _ <<<"${version#v}"
  # Node 23 is not supported: it is not maintained, and its first versions lack node:sqlite.
  ((major >= 24 || (major == 22 && minor >= 13))) || return 1
  node_flags=''
  # Node strips types without a flag since 22.18, and without a warning since 22.18 and 24.3.
  if ((major == 22 && minor < 18)); then
    node_flags='--experimental-strip-types --disable-warning=ExperimentalWarning'
  elif ((major == 24 && minor < 3)); then
    node_flags='--disable-warning=ExperimentalWarning'
  fi
}

# npm writes its hidden lock file last, so it marks a finished install.
is_set_up() {
  find_node && [ "$root/node_modules/.package-lock.json" -nt "$root/package-lock.json" ]
}

# Prepares the environment for npm and its child processes. npm looks for global settings, such as a proxy, next to the
# Node that runs it, so this sets their path.
use_node() {
  find_node
  if [ -z "${NPM_CONFIG_GLOBALCONFIG-}" ]; then
    NPM_CONFIG_GLOBALCONFIG=$(npm config get globalconfig)
    export NPM_CONFIG_GLOBALCONFIG
  fi
  export PATH="${node%/*}:$root/node_modules/.bin:$PATH"
}

# Installs the packages of the current folder. If node_modules is a link, such as to those of another checkout, npm would
# empty what it leads to.
npm_ci() {
  if [ -L node_modules ]; then rm node_modules || return; fi
  npm ci --no-audit --no-fund --loglevel=error "$@" >&2
}

# install_apart FOLDER: installs the packages of a folder that has a lock file of its own.
install_apart() (
  cd "$root/$1"
  [ node_modules/.package-lock.json -nt package-lock.json ] && exit
  # Where this is called in a condition, `set -e` does not count.
  npm_ci --ignore-scripts && touch node_modules/.package-lock.json
)

# The libraries that Holdfast is compared with.
install_peers() {
  install_apart bench
}

# What runs the specification of a name.
install_specification() {
  install_apart test/specification
}

# The frameworks of the recipes. Prisma generates its client without the engine that this variable names; without the
# variable it would download it.
install_integrations() (
  install_apart examples/integrations
  cd "$root/examples/integrations"
  PRISMA_SCHEMA_ENGINE_BINARY=/bin/true PRISMA_HIDE_UPDATE_MESSAGE=1 node_modules/.bin/prisma generate --schema schema.prisma >&2
)
