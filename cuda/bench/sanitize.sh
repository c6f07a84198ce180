#!/usr/bin/env bash
# Every kernel under compute-sanitizer's four tools, on a GPU: one line a run, "tool, stage, options, exit status, summary".
# Exit status 1 where a tool found anything.    cuda/bench/sanitize.sh [> docs/measured/CARD-DATE-sanitizer.txt]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export APP=${FLASH_APP:-$root/build/cuda/flashsteps-app}
FOLDER=$(mktemp -d)
export FOLDER
trap 'rm -rf "$FOLDER"' EXIT
command -v compute-sanitizer >/dev/null || { echo "sanitize.sh needs compute-sanitizer, a part of the CUDA toolkit" >&2; exit 2; }
python3 -c "
import struct, sys
header = repr({'descr': '<f4', 'fortran_order': False, 'shape': (4,)}).ljust(117) + '\n'
sys.stdout.buffer.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() +
                        struct.pack('<4f', .5, .25, .1, .05))" >"$FOLDER/slopes.npy"

one() {  # tool, stage, options
  local log status=0
  log=$(mktemp -p "$FOLDER")
  compute-sanitizer --tool "$1" --error-exitcode 99 "$APP" run "$2" --on gpu --n 130 --nk 193 --heads 4 --kv-heads 1 \
    "${@:3}" >"$log" 2>&1 || status=$?
  echo "$1 $2 ${*:3} exit $status $(grep -a SUMMARY "$log" | sed 's/^=* *//')" | sed "s|$FOLDER/||"
  return "$status"
}
export -f one

slopes="--alibi $FOLDER/slopes.npy"
for tool in memcheck racecheck synccheck initcheck; do
  for d in 64 128; do
    for options in "--causal" "--softcap 2 $slopes --window 40,9"; do
      for stage in 01 02 03 04 05a; do
        [[ $stage == 02 || $stage == 03 ]] && backward= || backward=--backward
        echo "one $tool $stage --d $d $options $backward"
      done
    done
    for stage in 05b 05c 05d; do echo "one $tool $stage --d $d --causal"; done
  done
  for d in 32 64 96 128 192 256; do
    echo "one $tool 05 --dtype bf16 --d $d --causal --backward"
    echo "one $tool 05 --dtype fp16 --d $d --splits 3 --dropout 0.2 --softcap 2 $slopes --backward --deterministic"
  done
done | xargs -P "$(nproc)" -I{} bash -c "{}" | sort
