#!/usr/bin/env bash
# Install Debian packages that are missing: as root by itself, otherwise it prints the one command and exits 2.
set -eu
missing=()
for package in "$@"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "install these with your package manager: ${missing[*]}" >&2; exit 2; }
if [ "$(id -u)" -ne 0 ]; then
  echo "missing system packages; run: sudo apt-get install -y ${missing[*]}" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || {
  apt-get update -q >/dev/null
  apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}
