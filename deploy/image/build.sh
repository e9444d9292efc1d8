#!/usr/bin/env bash
# Builds the image hlorank:VERSION with docker or podman. Where neither runs, builds its root file system into
# target/image instead, which run.sh runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# Without its format, podman drops the health check.
if docker info >/dev/null 2>&1; then
    docker build --tag "hlorank:$version" .
elif podman info >/dev/null 2>&1; then
    podman build --format docker --tag "hlorank:$version" .
else
    echo "neither docker nor podman runs here: building the image's root file system alone"
    make --no-print-directory setup build
    rm -rf target/image
    deploy/image/root.sh target/image
fi
