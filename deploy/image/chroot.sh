#!/usr/bin/env bash
# Builds the Dockerfile on a machine without a container engine: with buildah, whose steps run in a chroot. debootstrap
# and the Rust of this machine make what the Dockerfile calls its base, because no registry of images is asked. FOLDER
# gets the image's file system as `root`, and what buildah says of it as `image.json`; it must not exist yet.
# Needs root, buildah, debootstrap, and the version of Rust that the Dockerfile names. STORE (target/image-store) keeps
# the base between runs: about 3 GB.
# Usage: chroot.sh FOLDER
set -euo pipefail

out=$(realpath --canonicalize-missing "${1:?usage: chroot.sh FOLDER}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
store=$(realpath --canonicalize-missing "${STORE:-target/image-store}")
PATH=$PATH:/usr/sbin:/sbin

fail() {
    echo "image: $*" >&2
    exit 1
}

[ ! -e "$out" ] || fail "$out exists; remove it, or name another folder"
[ "$(id -u)" = 0 ] || fail "buildah in a chroot needs root"
for program in buildah debootstrap; do
    command -v "$program" >/dev/null || fail "$program is missing; run \`apt-get install buildah debootstrap\`"
done

base=$(sed -n 's/^FROM \(rust:[^ ]*\) AS build$/\1/p' Dockerfile)
version=$(sed -n 's/^rust:\([0-9.]*\)-slim-.*/\1/p' <<<"$base")
release=${base##*-}
[ -n "$version" ] || fail "the Dockerfile has no base such as rust:1.95.0-slim-bookworm"
[[ $(rustc --version) == "rustc $version "* ]] || fail "the base has Rust $version, and this machine $(rustc --version)"

engine() {
    buildah --root "$store/images" --runroot "$store/run" --storage-driver vfs "$@"
}

# The same packages and the same compiler as in the official image.
make_base() {
    local folder=$store/base container
    rm -rf "$folder"
    debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev "$release" "$folder" >"$store/base.log" ||
        fail "debootstrap failed; $store/base.log has why"
    cp "$(rustc --print sysroot)"/bin/{cargo,rustc} "$folder/usr/local/bin"
    cp -r "$(rustc --print sysroot)/lib/." "$folder/usr/local/lib"
    # What this machine trusts, for the registries that it reaches.
    cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs"
    container=$(engine from scratch)
    engine add --quiet "$container" "$folder" / >/dev/null
    engine config --env CARGO_HOME=/usr/local/cargo "$container"
    engine commit --quiet --rm "$container" "docker.io/library/$base" >/dev/null
    rm -rf "$folder"
}

mkdir -p "$store"
engine inspect --type image "docker.io/library/$base" >/dev/null 2>&1 || make_base

# With the packages that Cargo has fetched already. In buildah's default format the health check is dropped.
packages=${CARGO_HOME:-$HOME/.cargo}/registry
mkdir -p "$packages"
engine build --isolation chroot --pull-never --format docker --volume "$packages:/usr/local/cargo/registry" \
    --tag hlorank .

mkdir -p "$out"
engine inspect --type image hlorank >"$out/image.json"
container=$(engine from --pull-never hlorank)
cp -r "$(engine mount "$container")" "$out/root"
engine rm "$container" >/dev/null
engine rmi hlorank >/dev/null
echo "ready: $out/root, $(($(du --summarize --bytes "$out/root" | cut -f1) / 1000000)) MB"
