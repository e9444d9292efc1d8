#!/usr/bin/env bash
# Builds the image's root file system in FOLDER, which must not exist yet: the server, the command line, the shared
# libraries that they load, ONNX Runtime, the shipped models, and an /etc without a password or a shell.
# PROGRAMS is the folder of the built programs, target/dist by default; `make setup` fetches ONNX Runtime.
# Usage: root.sh FOLDER
set -euo pipefail

root=$(realpath --canonicalize-missing "${1:?usage: root.sh FOLDER}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
programs=${PROGRAMS:-target/dist}
runtime=target/onnxruntime
limit=120000000 # bytes

fail() {
    echo "image: $*" >&2
    exit 1
}

[ ! -e "$root" ] || fail "$root exists; remove it, or name another folder"
for file in "$programs/hlorank-server" "$programs/hlorank" "$runtime/libonnxruntime.so" "$runtime/licences/LICENSE"; do
    [ -f "$file" ] || fail "$file is missing; run \`make build setup PROFILE=dist\`"
done

# Lists the shared libraries that programs or libraries load, including the loader.
libraries() {
    local found
    found=$(ldd "$@") || fail "ldd cannot read $*"
    ! grep 'not found' <<<"$found" >&2 || fail "a shared library is missing"
    grep --only-matching --extended-regexp '/[^ :]+ \(0x' <<<"$found" | cut -d' ' -f1 | sort --unique
}

umask 022
mkdir -p "$root"/{etc,dev,proc,sys,models,usr/bin,usr/lib,usr/share/licenses/{hlorank,onnxruntime}}

cp "$programs/hlorank-server" "$programs/hlorank" "$root/usr/bin"
# Removes the line tables of unoptimized builds.
strip --strip-debug "$root/usr/bin/"*
cp "$runtime/libonnxruntime.so" "$root/usr/lib"
cp LICENSE "$root/usr/share/licenses/hlorank"
cp "$runtime/licences/"* "$root/usr/share/licenses/onnxruntime"

for library in $(libraries "$root/usr/bin/"* "$root/usr/lib/libonnxruntime.so"); do
    cp --dereference --parents "$library" "$root"
    # The licence of the library. /lib is a link to /usr/lib, and a package lists its files under one of them.
    package=$({ dpkg --search "$library" "/usr$library" 2>/dev/null || true; } | head -n 1 | cut -d: -f1)
    [ ! -f "/usr/share/doc/$package/copyright" ] || cp --parents "/usr/share/doc/$package/copyright" "$root"
done

cp -r models/registry/. "$root/models"
rm -f "$root/models/policy.json"

echo 'hlorank:x:65532:65532:hlorank:/:/sbin/nologin' >"$root/etc/passwd"
echo 'hlorank:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

size=$(du --summarize --bytes "$root" | cut -f1)
[ "$size" -le "$limit" ] || fail "$root has $size bytes, more than $limit"
echo "ready: $root, $((size / 1000000)) MB"
