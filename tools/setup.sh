#!/usr/bin/env bash
# Installs what building and testing Berth needs on Debian 12; does nothing, at once, where all of it is there.
#
#   tools/setup.sh [--no-servers]
#
# Packages: tools/packages_debian12.txt, by apt-get, as root or through sudo. Then the servers that Berth is tested
# against (tools/test_servers.sh, built with the Go that tools/install_go.sh sees to), unless --no-servers.
# Starts from nothing but a shell, apt and git: no curl, no Python, no package lists.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root list="$root/tools/packages_debian12.txt"

say() { printf '%s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
as_root() { if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi; }
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

wanted() { grep -Ev '^(#|$)' "$list"; }

missing() {  # those of wanted() that are not installed
  local installed
  # shellcheck disable=SC2016,SC2046  # dpkg's own format; names have no spaces
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $(wanted) 2>/dev/null || true)
  wanted | grep -vxF -f <(sed -n 's/^installed //p' <<<"$installed") || true
}

known_to_apt() {  # every one has a candidate in the package lists that are here
  local package
  for package in "$@"; do
    apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
  done
}

explain_system() {
  local name='this system' codename=''
  if [[ -r /etc/os-release ]]; then
    # shellcheck source=/dev/null
    name=$(. /etc/os-release && echo "$PRETTY_NAME")
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  fi
  [[ $codename == bookworm ]] || say "setup: Berth is built and tested on Debian 12; on $name package names may differ."
}

install_packages() {
  local packages
  mapfile -t packages < <(missing)
  [[ ${#packages[@]} -gt 0 ]] || return 0
  explain_system
  [[ $(id -u) -eq 0 ]] || command -v sudo >/dev/null ||
    fail "${#packages[@]} packages are missing and this is neither root nor is there sudo.
  As root: apt-get install --no-install-recommends ${packages[*]}"
  known_to_apt "${packages[@]}" || { say "fetching package lists"; apt update; }
  say "installing ${#packages[@]} packages: ${packages[*]}"
  if ! apt install -y --no-install-recommends "${packages[@]}"; then
    say "that failed; once more with fresh package lists"
    apt update
    apt install -y --no-install-recommends "${packages[@]}" || fail "apt-get could not install the packages: its messages are above.
  Without a network nothing can be fetched; a proxy goes into /etc/apt/apt.conf.d. Then run this again."
  fi
}

main() {
  local servers=yes
  case ${1:-} in
    '') ;;
    --no-servers) servers=no ;;
    *) fail "unknown argument '$1'; there is --no-servers" ;;
  esac
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    install_packages
  elif ! command -v g++ cmake ninja python3 >/dev/null; then
    fail "no apt-get here. Install the equivalents of the packages in tools/packages_debian12.txt by hand."
  fi
  [[ $servers == yes ]] || return 0
  "$root/tools/test_servers.sh" --if-built >/dev/null 2>&1 && return 0
  "$root/tools/install_go.sh"
  "$root/tools/test_servers.sh" >/dev/null
}

main "$@"
