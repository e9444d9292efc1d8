#!/usr/bin/env bash
# Profiles a server under a workload: calls that rank the configurations of a file of measurements, none of them cached.
# Writes a flame graph and a table of the encoder's operators to target/profile. `make profile` builds what this needs.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=${PROGRAMS:-target/release}
file=${1:-tests/data/measured/tile_kernels.pb}
model=${2:-tile-xla-cpu}
seconds=${PROFILE_SECONDS:-10}
out=target/profile
mkdir -p "$out"

if ! command -v perf >/dev/null; then
    echo "profile: needs perf (Debian: linux-perf), and kernel.perf_event_paranoid of at most 2" >&2
    exit 1
fi

"$programs/hlorank-server" --listen 127.0.0.1:0 --metrics-listen off --models tests/data/all-models --embedding-cache-bytes 0 \
    --log info --log-format text >"$out/server.log" 2>&1 &
server=$!
stop() {
    kill "$server" 2>/dev/null && wait "$server" || true
}
trap stop EXIT

# The server logs its address when it accepts calls.
address=
for _ in $(seq 100); do
    address=$(sed -n 's/.*serving address=\([0-9.:]*\).*/\1/p' "$out/server.log")
    [ -n "$address" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$out/server.log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "profile: the server did not start in 10 seconds, see $out/server.log" >&2; exit 1; }

perf record --quiet --freq 499 --call-graph dwarf,16384 --pid "$server" --output "$out/perf.data" &
recorder=$!
calls=0
end=$((SECONDS + seconds))
while [ "$SECONDS" -lt "$end" ]; do
    "$programs/hlorank" rank --graph "$file" --module 0 --model "$model" --endpoint "http://$address" >"$out/load.txt"
    calls=$((calls + 1))
done
echo "$calls calls in $seconds s"
kill -INT "$recorder"
wait "$recorder" || true
perf script --input "$out/perf.data" 2>/dev/null | target/tools/bin/inferno-collapse-perf \
    | target/tools/bin/inferno-flamegraph --title "$model, $file" >"$out/flame.svg"
rm "$out/perf.data"

version=$(ls "tests/data/all-models/$model" | sort -n | tail -1)
"$programs/hlorank" graph features "$file" --module 0 --out "$out/features.npz" >/dev/null
"${PYTHON:-target/baselines/python/bin/python}" tests/baselines/operators.py \
    "tests/data/all-models/$model/$version" "$out/features.npz" | tee "$out/operators.txt"
echo "wrote $out/flame.svg, $out/operators.txt and $out/load.txt, the answer to the last call"
