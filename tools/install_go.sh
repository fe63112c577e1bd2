#!/usr/bin/env bash
# Makes sure that a Go able to build the test servers is installed: any go >= 1.21, which fetches the toolchain that
# go.mod names by itself (GOTOOLCHAIN=auto). Does nothing where there is one. On Debian 12 (bookworm) it enables
# bookworm-backports, since Debian's own Go is 1.19, and installs golang-go from there. Needs root or sudo.
set -euo pipefail

fail() { printf 'install_go: %s\n' "$*" >&2; exit 1; }

new_enough() {  # a go >= 1.21 is on the path
  local release
  release=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  [[ $release =~ go1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 21 ]]
}

as_root() { if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi; }

bookworm_mirror() {  # the URI of the apt source that has bookworm main; known after an update
  # shellcheck disable=SC2016  # apt's own format, not the shell's
  apt-get indextargets --format '$(REPO_URI)' \
    'Created-By: Packages' 'Codename: bookworm' 'Component: main' 'Label: Debian' | sed -n 1p
}

# Installs golang-go from bookworm-backports, at the mirror that this machine already uses for bookworm itself.
install_from_backports() {
  local list=/etc/apt/sources.list.d/bookworm-backports.sources mirror
  if ! grep -rqs 'bookworm-backports' /etc/apt/sources.list /etc/apt/sources.list.d; then
    as_root apt-get update -qq
    mirror=$(bookworm_mirror)
    [[ -n $mirror ]] || fail "apt names no mirror of bookworm main; enable bookworm-backports by hand."
    printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
      "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg | as_root tee "$list" >/dev/null
  fi
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -t bookworm-backports golang-go
}

if new_enough; then exit 0; fi
command -v apt-get >/dev/null || fail "no apt-get here: install Go 1.21 or newer by hand, then run this again."
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
case $codename in
  bookworm) install_from_backports ;;
  *) as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends golang-go ;;
esac
hash -r
new_enough || fail "$(command -v go || echo go) is still older than 1.21 or missing; another Go may stand before /usr/bin in PATH."
