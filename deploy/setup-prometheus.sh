#!/usr/bin/env bash
# Extracts Prometheus and promtool into FOLDER from Debian's package, whose signature and digest apt checks. Needs no
# root. Does nothing if they exist already. Usage: setup-prometheus.sh FOLDER
set -euo pipefail

folder=${1:?usage: setup-prometheus.sh FOLDER}
if [ -x "$folder/prometheus" ] && [ -x "$folder/promtool" ]; then
    exit 0
fi

fail() {
    echo "setup-prometheus: $*" >&2
    echo "setup-prometheus: or set HLORANK_PROMETHEUS to a folder with programs prometheus and promtool" >&2
    exit 1
}

for program in apt-get dpkg; do
    command -v "$program" >/dev/null || fail "$program is missing: this fetches Debian's package"
done

mkdir -p "$folder"
work=$(mktemp -d "$folder/download.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "fetching Prometheus"
(cd "$work" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" prometheus) || fail "the package could not be fetched; \`apt-get update\` may help"
dpkg -x "$work"/prometheus_*.deb "$work/package"
mv "$work/package/usr/bin/promtool" "$work/package/usr/bin/prometheus" "$folder"
echo "ready: $("$folder/prometheus" --version 2>&1 | head -n 1)"
