# Sourced by the scripts beside it: where things are, and which Node is the project's.
# Written for bash 3.2 too, which is what macOS has.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.tools

# Sets `node` to the one that setup brought, else to the machine's if it is new enough, and `node_flags` to what that
# one needs to run TypeScript without a warning.
find_node() {
  local version major minor
  node=$tools/node/bin/node
  [ -x "$node" ] || node=$(command -v node) || return 1
  version=$("$node" -v) || return 1
  IFS=. read -r major minor _ <<<"${version#v}"
  # In Node 23 node:sqlite came late, and nobody maintains it.
  ((major >= 24 || (major == 22 && minor >= 13))) || return 1
  node_flags=''
  # Types are stripped without a warning since 22.18 and 24.3, and without a flag since 22.18.
  if ((major == 22 && minor < 18)); then
    node_flags='--experimental-strip-types --disable-warning=ExperimentalWarning'
  elif ((major == 24 && minor < 3)); then
    node_flags='--disable-warning=ExperimentalWarning'
  fi
}

# npm writes its hidden lock file last, so that it stands for a finished install.
is_set_up() {
  find_node && [ "$root/node_modules/.package-lock.json" -nt "$root/package-lock.json" ]
}

# For npm, and for whatever it starts. npm looks for the machine's settings, such as a proxy or a certificate, beside the
# Node that runs it, so it is told where they are.
use_node() {
  find_node
  if [ -z "${NPM_CONFIG_GLOBALCONFIG-}" ]; then
    NPM_CONFIG_GLOBALCONFIG=$(npm config get globalconfig)
    export NPM_CONFIG_GLOBALCONFIG
  fi
  export PATH="${node%/*}:$root/node_modules/.bin:$PATH"
}
