# Sourced by script/setup: unpacks servers of newer releases of Debian into .tools, in addition to the installed ones. They run
# with their own libc, so any Debian can start them. Java and the other servers come from --servers.

# Dependencies are not resolved, so all packages are listed: servers, then libraries, then the jars of ZooKeeper.
newest_packages='
redis-server redis-tools valkey-server valkey-tools etcd-server postgresql-17 postgresql-client-17 pgbouncer
libc6 libjemalloc2 liblzf1 libssl3t64 libsystemd0 libstdc++6 libgcc-s1 libcap2 libzstd1 zlib1g libatomic1 libpq5 libldap2
libxml2 libxslt1.1 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1 libsasl2-2 libpam0g
libaudit1 libcap-ng0 libicu76 liblz4-1 libuuid1 libselinux1 libpcre2-8-0 liblzma5 libxxhash0 libcares2 libevent-2.1-7t64
libllvm19 libz3-4 libedit2 libbsd0 libmd0 libtinfo6 libffi8
libzookeeper-java libcommons-cli-java libcommons-io-java libdropwizard-metrics-java libnetty-java libslf4j-java
libsnappy-java
'
newest_programs='bin/redis-server bin/redis-cli bin/valkey-server bin/valkey-cli bin/etcd sbin/pgbouncer
lib/postgresql/17/bin/postgres lib/postgresql/17/bin/initdb lib/postgresql/17/bin/pg_basebackup'

install_newest_servers() { unpack_newest newest trixie "$newest_packages" "$newest_programs"; }

install_newer_nats() { unpack_newest newer forky 'nats-server libc6' sbin/nats-server; }

# unpack_newest NAME SUITE PACKAGES PROGRAMS: into .tools/NAME.
unpack_newest() {
  local folder=$tools/$1 work=$tools/$1.new newest_suite=$2 stamp program
  stamp=$(echo "$newest_suite" $3)
  if [ "$(cat "$folder/packages" 2>/dev/null)" = "$stamp" ]; then return 0; fi

  echo "unpacking servers of Debian's $newest_suite into .tools/$1"
  rm -rf "$work"
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/debs"
  download_newest "$work" $3
  for program in $4; do wrap_newest "$work/usr" "$program"; done
  rm -rf "$work/apt"
  echo "$stamp" >"$work/packages"
  rm -rf "$folder"
  mv "$work" "$folder"
}

# download_newest FOLDER PACKAGE…: downloads and unpacks packages with separate apt lists and the mirror of this machine.
download_newest() {
  local work=$1 apt=$1/apt mirror options archive codename
  shift
  for archive in apt-get dpkg; do
    command -v $archive >/dev/null || fail "servers of $newest_suite are packages of Debian: $archive is not installed"
  done
  codename=$(. /etc/os-release && echo "$ID ${VERSION_CODENAME-}")
  mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="${codename#* }" '$2 == release && $3 == "main" { print $1; exit }') || true
  [ "${codename% *}" = debian ] && [ -n "$mirror" ] ||
    fail "servers of $newest_suite need a Debian mirror, but the apt sources of this machine (/etc/apt) have none"

  echo "deb $mirror $newest_suite main" >"$apt/sources.list"
  options="-qq -o Dir::State::lists=$apt/lists -o Dir::State::status=/dev/null -o Dir::Cache=$apt/cache
    -o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=/dev/null
    -o APT::Sandbox::User= -o Debug::NoLocking=true"
  apt-get $options -o APT::Update::Error-Mode=any update ||
    fail "the Debian mirror of this machine (/etc/apt) does not serve $newest_suite"
  (cd "$apt/debs" && apt-get $options download "$@") ||
    fail "the Debian mirror of this machine (/etc/apt) did not serve all packages of $newest_suite"
  for archive in "$apt"/debs/*.deb; do dpkg -x "$archive" "$work"; done
}

# wrap_newest USR PROGRAM: replaces the program by a script that runs it with the unpacked libraries. Paths are relative
# to the script. --argv0 keeps its name, because PostgreSQL finds its files relative to that.
wrap_newest() {
  local usr=$1 program=$2 libraries loader up outside
  [ -x "$usr/$program" ] || fail "the packages of $newest_suite do not contain $program"
  libraries=lib/$(uname -m)-linux-gnu
  loader=$(cd "$usr" && compgen -G 'lib*/ld-linux*' | head -n 1) || fail "the libc of $newest_suite has no loader"
  outside=$("$usr/$loader" --library-path "$usr/$libraries" --list "$usr/$program" 2>&1 | grep -vE "$usr|vdso|not a dynamic") &&
    fail "the packages in script/newest.sh lack libraries of $program: $outside"
  cp "$usr/$program" "$usr/$program.real"
  up=$(dirname "$program" | sed 's|[^/]*|..|g')
  rm "$usr/$program"
  cat >"$usr/$program" <<WRAPPER
#!/bin/sh
usr=\${0%/*}/$up
exec "\$usr/$loader" --library-path "\$usr/$libraries" --argv0 "\$0" "\$usr/$program.real" "\$@"
WRAPPER
  chmod 755 "$usr/$program"
}
