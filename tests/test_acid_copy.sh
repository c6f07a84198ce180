#!/usr/bin/env bash
# The acid test: an unchanged copy of a stage under a new name is found by itself and passes everything.
# label: deep
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tar -C "$root" --exclude=./build --exclude=./.git --exclude=./.venv-notebooks -cf - . | tar -C "$work" -xf -
cp -r "$work/stages/03_online_softmax" "$work/stages/09_copied_softmax"
sed -i 's/flash::online_softmax/flash::copied_softmax/' "$work/stages/09_copied_softmax/forward.hpp"

cmake -S "$work" --preset cpu -DFLASH_TESTS=ON
programs=(test_correctness test_io_exact test_sram_capacity test_lesson_diff)
cmake --build "$work/build/cpu" --target flashsteps-app "${programs[@]}"
for program in "${programs[@]}"; do "$work/build/cpu/tests/$program" '~[deep]'; done
"$work/build/cpu/flashsteps-app" run copied_softmax --n 64 --d 16 --causal --check >/dev/null
"$work/build/cpu/flashsteps-app" tour | grep "^09 " >/dev/null
echo "the copy was found and passed"
