#!/usr/bin/env bash
# Makes sure that a Go able to build the test servers is installed: any go >= 1.21, which fetches the toolchain that
# go.mod names by itself (GOTOOLCHAIN=auto). Does nothing where there is one. On Debian 12 (bookworm) it enables
# bookworm-backports, since Debian's own Go is 1.19, and installs golang-go from there. Needs root or sudo.
set -euo pipefail

fail() { printf 'install_go: %s\n' "$*" >&2; exit 1; }

new_enough() {  # a go >= 1.21 is on the path
  local release minor
  release=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  minor=${release#go1.}; minor=${minor%%[!0-9]*}
  [[ ${minor:-0} -ge 21 ]]
}

as_root() { if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi; }

# Installs golang-go from a suite of Debian's archive, written down once in a source file of our own.
install_from_backports() {
  local list=/etc/apt/sources.list.d/bookworm-backports.sources
  if ! grep -rqs 'bookworm-backports' /etc/apt/sources.list /etc/apt/sources.list.d; then
    as_root tee "$list" >/dev/null <<'SOURCES'
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
  fi
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -t bookworm-backports golang-go
}

if new_enough; then exit 0; fi
command -v apt-get >/dev/null || fail "no apt-get here: install Go 1.21 or newer by hand, then run this again."
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
case $codename in
  bookworm) install_from_backports ;;
  *) as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends golang-go ;;
esac
hash -r
new_enough || fail "$(command -v go || echo go) is still older than 1.21 or missing; another Go may stand before /usr/bin in PATH."
