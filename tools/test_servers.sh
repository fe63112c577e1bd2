#!/usr/bin/env bash
# Builds the real Kubernetes servers that Berth is tested against: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler, kubectl and kwok, from the Go modules under tests/cluster/.
#
#   tools/test_servers.sh             build what is missing; the last line of stdout is the folder with the binaries
#   tools/test_servers.sh --if-built  the same without building: status 77 and no output where they are not built
#
# The binaries lie outside the checkout, under ${BERTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth}/servers/<hash>/bin,
# where <hash> covers everything that decides what is built. A folder appears there complete or not at all. A first build
# takes five to ten minutes on two cores; a changed version costs what changed, since Go's own build cache is used.
# KUBEBUILDER_ASSETS, where it holds all six binaries, is used instead.
set -euo pipefail

readonly binaries=(etcd kube-apiserver kubectl kube-scheduler kube-controller-manager kwok)
readonly needed_mib=6500  # module downloads, Go's build cache and the binaries, on a fresh machine
readonly not_built=77

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root modules="$root/tests/cluster"

say() { printf '%s\n' "$*" >&2; }
fail() { say "test_servers: $*"; exit 1; }

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

has_all() {  # has_all DIR: every binary is there and executable
  local name
  for name in "${binaries[@]}"; do [[ -x $1/$name ]] || return 1; done
}

source_hash() {
  {
    uname -sm
    cat "${BASH_SOURCE[0]}" "$modules"/{servers,etcd,kwok}/go.{mod,sum}
  } | sha256sum | cut -c1-16
}

# The package of each binary, and the module whose version it carries.
module_of() {
  case $1 in
    etcd) echo etcd ;;
    kwok) echo kwok ;;
    *) echo servers ;;
  esac
}

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kwok) echo sigs.k8s.io/kwok/cmd/kwok ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# Linker flags: no debug tables, and the version that a release build of the same source would report.
link_flags() {
  local version major minor package flags='-s -w'
  case $1 in
    etcd | kwok) ;;  # theirs is in the source
    *)
      version=$(kubernetes_version)
      IFS=. read -r major minor _ <<<"${version#v}"
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
        flags+=" -X $package.gitTreeState=clean"
      done ;;
  esac
  echo "$flags"
}

kubernetes_version() { awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' "$modules/servers/go.mod"; }

check_go() {
  command -v go >/dev/null || fail "the test servers are built with Go, which is not installed.
  './dev setup' installs it (tools/install_go.sh). Or set KUBEBUILDER_ASSETS to a folder that holds: ${binaries[*]}"
  local release
  release=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
  [[ $release =~ go1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 21 ]] ||
    fail "$release is too old: 1.21 or newer can fetch the toolchain that go.mod names.
  './dev setup' installs one (tools/install_go.sh)."
}

existing() {  # existing PATH: the path itself or its nearest parent that is there
  local path=$1
  while [[ ! -e $path ]]; do path=$(dirname "$path"); done
  echo "$path"
}

check_disk() {  # check_disk DIR: a build that fills the disk fails late and unclearly
  local free_mib
  free_mib=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
  [[ $free_mib -ge ${BERTH_SERVERS_NEED_MIB:-$needed_mib} ]] || fail "only $free_mib MiB free at $1; a first build needs about $needed_mib MiB.
  Free some, or point BERTH_CACHE, GOCACHE and GOMODCACHE at a larger disk.
  Where Go's caches are warm less will do: BERTH_SERVERS_NEED_MIB=1000 lowers the check."
}

build_one() {  # build_one NAME OUTPUT_DIR LOG
  local name=$1 flags
  flags=$(link_flags "$name")
  (cd "$modules/$(module_of "$name")" &&
    CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=${GOTOOLCHAIN:-auto} GOFLAGS='' \
      go build -mod=readonly -trimpath -buildvcs=false -ldflags "$flags" -o "$2/$name" "$(package_of "$name")") >"$3" 2>&1
}

build_all() {  # build_all FINAL_DIR: builds beside it, then renames
  local final=$1 staging name began index=0
  staging=$(mktemp -d "$final.building.XXXXXX")
  # shellcheck disable=SC2064  # the name is fixed now
  trap "rm -rf '$staging'" EXIT
  mkdir "$staging/bin"
  say "Building the test servers (once; several minutes on two cores):"
  for name in "${binaries[@]}"; do
    index=$((index + 1))
    printf '  [%d/%d] %-24s ' "$index" "${#binaries[@]}" "$name" >&2
    began=$SECONDS
    if ! build_one "$name" "$staging/bin" "$staging/build.log"; then
      say failed
      tail -n 20 "$staging/build.log" >&2
      fail "building $name failed; the end of Go's output is above. Running this again continues from Go's cache."
    fi
    say "$((SECONDS - began)) s, $(du -m "$staging/bin/$name" | cut -f1) MiB"
  done
  rm -f "$staging/build.log"
  rm -rf "$final"
  mv -T "$staging" "$final"
}

main() {
  local may_build=yes
  case ${1:-} in
    '') ;;
    --if-built) may_build=no ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument '$1'; see --help" ;;
  esac

  if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
    if has_all "$KUBEBUILDER_ASSETS"; then echo "$KUBEBUILDER_ASSETS"; exit 0; fi
    say "test_servers: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks some of: ${binaries[*]}; not used."
  fi

  local servers final
  servers=${BERTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth}/servers
  final=$servers/$(source_hash)
  if has_all "$final/bin"; then echo "$final/bin"; exit 0; fi
  [[ $may_build == yes ]] || exit $not_built

  check_go
  mkdir -p "$servers"
  exec 9>"$servers/.lock"
  if ! flock -n 9; then
    say "test_servers: another build is running; waiting for it."
    flock 9
  fi
  if ! has_all "$final/bin"; then  # the other build may have been the same one
    rm -rf "$servers"/*.building.*  # what a killed build left; nobody else builds while we hold the lock
    check_disk "$servers"
    check_disk "$(existing "$(cd / && go env GOCACHE)")"
    check_disk "$(existing "$(cd / && go env GOMODCACHE)")"
    build_all "$final" 9>&-
  fi
  echo "$final/bin"
}

main "$@"
