#!/usr/bin/env bash
# Builds the image hlorank:VERSION with docker or podman. If neither runs, builds its root file system into
# target/image instead, for run.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# In podman's default format the health check is dropped.
if docker info >/dev/null 2>&1; then
    docker build --tag "hlorank:$version" .
elif podman info >/dev/null 2>&1; then
    podman build --format docker --tag "hlorank:$version" .
else
    echo "neither docker nor podman runs here: building only the image's root file system"
    make --no-print-directory setup build
    rm -rf target/image
    deploy/image/root.sh target/image
fi
