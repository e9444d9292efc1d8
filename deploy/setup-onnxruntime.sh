#!/usr/bin/env bash
# Extracts ONNX Runtime into FOLDER/libonnxruntime.so, and its licence and notices into FOLDER/licences, from PyPI's
# wheel, whose digest is checked. Does nothing if they exist already. Concurrent runs repeat the work, but files are
# moved into place whole.
# Usage: setup-onnxruntime.sh FOLDER
set -euo pipefail

requirements=$(dirname "${BASH_SOURCE[0]}")/onnxruntime-requirements.txt
folder=${1:?usage: setup-onnxruntime.sh FOLDER}
library=$folder/libonnxruntime.so
licences=$folder/licences
stamp=$folder/libonnxruntime.digest

fail() {
    echo "setup-onnxruntime: $*" >&2
    echo "setup-onnxruntime: or set HLORANK_ONNXRUNTIME to an ONNX Runtime 1.24 or newer of your own" >&2
    exit 1
}

architecture=$(uname -m)
[ "$architecture" != arm64 ] || architecture=aarch64
digest="$architecture $(cksum <"$requirements")"
if [ -f "$library" ] && [ -f "$licences/LICENSE" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi

[ "$(uname -s)" = Linux ] || fail "the pinned library is for Linux, not for $(uname -s)"
case $architecture in
x86_64 | aarch64) ;;
*) fail "there is no pinned library for $architecture" ;;
esac
command -v python3 >/dev/null || fail "python3 is missing; install it (any Python 3 with pip)"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing; install it (python3 -m ensurepip, or python3-pip)"

mkdir -p "$folder"
work=$(mktemp -d "$folder/download.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "fetching ONNX Runtime for $architecture"
# The wheel is for a fixed Python version, so that the digest holds for every Python that runs this.
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --python-version 3.12 --implementation cp --abi cp312 --platform "manylinux_2_28_$architecture" \
    --dest "$work" --requirement "$requirements" || fail "the wheel could not be fetched"

python3 - "$work" <<'PYTHON'
import pathlib, shutil, sys, zipfile

work = pathlib.Path(sys.argv[1])
[wheel] = work.glob("onnxruntime-*.whl")
with zipfile.ZipFile(wheel) as archive:
    [library] = [n for n in archive.namelist() if n.startswith("onnxruntime/capi/libonnxruntime.so.")]
    files = {"library": library}
    files |= {file: f"onnxruntime/{file}" for file in ("LICENSE", "ThirdPartyNotices.txt")}
    for file, name in files.items():
        with archive.open(name) as source, open(work / file, "wb") as target:
            shutil.copyfileobj(source, target)
PYTHON

mkdir -p "$licences"
mv "$work/ThirdPartyNotices.txt" "$work/LICENSE" "$licences"
mv "$work/library" "$library"
printf '%s\n' "$digest" >"$work/digest"
mv "$work/digest" "$stamp"
echo "ready: $library"
