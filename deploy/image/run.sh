#!/usr/bin/env bash
# Runs COMMAND in the root file system FOLDER that root.sh built, without a container engine: read-only, as the image's
# user, without capabilities, on the host network, with the current environment. `--models DIR` mounts DIR, writable,
# over the shipped models. Needs root, or a kernel that allows user namespaces.
# Usage: run.sh [--models DIR] FOLDER COMMAND...
set -euo pipefail

models=
if [ "${1:-}" = --models ]; then
    models=$(realpath "${2:?usage: run.sh [--models DIR] FOLDER COMMAND...}")
    shift 2
fi
root=$(realpath "${1:?usage: run.sh [--models DIR] FOLDER COMMAND...}")
shift

# chroot lies in a folder that the path may lack.
PATH=$PATH:/usr/sbin:/sbin

user=65532
[ "$(id -u)" = 0 ] && privileged=yes || privileged=

# The mounts live in a namespace and end with it. Every step replaces the process, so signals arrive.
# shellcheck disable=SC2016
inside='
    root=$1 models=$2 privileged=$3 user=$4
    shift 4
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
    for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
    [ -z "$models" ] || mount --bind "$models" "$root/models"
    if [ -n "$privileged" ]; then
        exec setpriv --no-new-privs -- chroot --userspec="$user:$user" --groups="$user" "$root" "$@"
    fi
    exec setpriv --no-new-privs -- unshare --user --map-user="$user" --map-group="$user" --root="$root" --wd=/ "$@"
'
flags=(--mount)
[ -n "$privileged" ] || flags+=(--user --map-root-user)
exec unshare "${flags[@]}" -- sh -euc "$inside" sh "$root" "$models" "$privileged" "$user" "$@"
