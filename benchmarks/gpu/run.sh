#!/usr/bin/env bash
# TRL on one GPU, on a machine without a network, in at most 8 minutes.
#
#     bash benchmarks/gpu/run.sh [options of measure.py]
#
# Needs the parts that pack.py made, in pack/ beside this file, and a python3 with the packages of machine.txt.
# The results of measure.py are in $OUT, by default runs/gpu.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
out=${OUT:-$root/runs/gpu}
limit=${LIMIT_SECONDS:-470} # for everything; measure.py is interrupted then, and writes down what it has
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"

if ! (cd "$here/pack" && sha256sum --quiet --check SHA256SUMS); then
    echo "parts are missing or damaged. Next: python benchmarks/gpu/pack.py, and bring all of benchmarks/gpu/pack" >&2
    exit 1
fi
cat "$here"/pack/part-* | tar -x -C "$scratch"
# Into a folder, since a virtual environment made from another one does not see the packages of that one.
python3 -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check \
    --target "$scratch/site" "$scratch"/wheels/*.whl

export PYTHONPATH=$scratch/site:$root/tests/support:$root/adapters/trl/tests
export GEM_CACHE=${GEM_CACHE:-$scratch/cache} CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false TQDM_DISABLE=1 PYTHONUNBUFFERED=1
echo "installed after $SECONDS s"
status=0
timeout --signal INT --kill-after 20 $((limit - SECONDS)) python3 "$here/measure.py" --output "$out" "$@" 2>&1 |
    tee "$out/log.txt" || status=$?
echo "ended after $SECONDS s"
exit $status
