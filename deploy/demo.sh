#!/usr/bin/env bash
# Starts a server on a free loopback port, ranks measured configurations of every task, and stops the server.
# `make demo` builds what this needs.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=${PROGRAMS:-target/debug}
log=target/demo.log

"$programs/hlorank-server" --listen 127.0.0.1:0 --metrics-listen off --models models/registry --log info \
    --log-format text >"$log" 2>&1 &
server=$!
stop() {
    kill "$server" 2>/dev/null && wait "$server" || true
}
trap stop EXIT

# The server logs its address when it accepts calls.
address=
for _ in $(seq 100); do
    address=$(sed -n 's/.*serving address=\([0-9.:]*\).*/\1/p' "$log")
    [ -n "$address" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "demo: the server did not start in 10 seconds, see $log" >&2; exit 1; }

export HLORANK_ENDPOINT=http://$address
echo "hlorank-server listens on $address and has these models:"
echo
"$programs/hlorank" models

measured=tests/data/measured
printf '\nLayouts of a whole program, measured on XLA:CPU (%s):\n\n' "$measured/layout_random_window_nchw_train.pb"
"$programs/hlorank" rank --graph "$measured/layout_random_window_nchw_train.pb" --top 5
printf '\nTiles of one kernel, measured with IREE on a CPU (%s):\n\n' "$measured/tile_dispatches.pb"
"$programs/hlorank" rank --graph "$measured/tile_dispatches.pb" --model tile-iree-cpu --module 0 --top 5
fused=tests/data/fused/rotary.pb
printf '\nFusions of a program, measured on XLA:CPU, and the kernels of the best (%s):\n\n' "$fused"
"$programs/hlorank" report --graph "$fused" --top 5

trap - EXIT
kill "$server"
wait "$server"
printf '\nThe server stopped cleanly; its log is %s.\n' "$log"
