#!/usr/bin/env bash
# Compiles one kernel file to a shared object: for the virtual GPU by the host compiler, or for a GPU by nvcc.
#   compile_kernel.sh vgpu FILE.cu OUT.so [FLAG …]      CXX, FLASH_GPU_LIBRARY: g++ 12 or newer, libflash_gpu.so
#   compile_kernel.sh gpu  FILE.cu OUT.so [FLAG …]      NVCC, FLASH_CUDA_ARCHS ("75 80 90"): the first is the target and is
#                                                       embedded as PTX, too, for cards to come
# The only place where a kernel's flags stand: builds, tests that plant mistakes and notebooks all come here.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
side=$1 source=$(realpath "$2") out=$(realpath -m "$3")
shift 3
cd "$root"  # debug information names files from here

vgpu() {
  CXX=${CXX:-g++}
  # -fsanitize=thread puts a call before every load and store. That sanitizer's library is not linked: the virtual GPU
  # takes the calls. Nothing but the module's flash_… symbol is visible, so that no instrumented inline function replaces
  # one of the program's own. -O0: loads, stores, lines and locals are the source's, for counts and for a debugger, and
  # a float4 is one access of 16 bytes. -fstack-check: a function that has no room left in its thread's local memory
  # stops where it begins, 4 KiB before it would, and not in the virtual GPU's functions that it calls. -fno-plt: a
  # thread interrupted anywhere in its kernel is on a line; entries of a linkage table have none.
  local instrumented=(-fsanitize=thread --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1
    -fvisibility=hidden -fno-stack-clash-protection -fstack-check -fno-plt)
  if [[ $("$CXX" --version) == *clang* ]]; then
    echo "$source: $CXX is clang, which takes a kernel's vector accesses apart: set CXX to g++ 12 or newer" >&2
    exit 1
  fi
  "$CXX" -x c++ -std=c++20 -O0 -g -fPIC -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas \
    "${instrumented[@]}" -I"$root" -ffile-prefix-map="$root=." -MMD -MF "$out.d" -MT "$out" "$@" -c "$source" -o "$out.o"
  "$CXX" -shared -Wl,-Bsymbolic -Wl,--version-script=<(echo '{ global: flash_*; local: *; };') "$out.o" -o "$out" \
    ${FLASH_GPU_LIBRARY:+"$FLASH_GPU_LIBRARY" -Wl,-rpath,"$(dirname "$FLASH_GPU_LIBRARY")"}
  rm "$out.o"
}

gpu() {
  local archs=() codes=() report=$out.ptxas target
  target=$(sed -nE 's/^FLASH_MODULE = \{"[^"]*", ([0-9]+),.*/\1/p' "$source")  # older GPUs lack its instructions
  for arch in ${FLASH_CUDA_ARCHS:-75 80 90}; do [[ ${arch%[af]} -lt ${target:-0} ]] || archs+=("$arch"); done
  [[ ${#archs[@]} -gt 0 ]] || archs=("$target")
  codes=(-gencode "arch=compute_${archs[0]},code=compute_${archs[0]}")
  for arch in "${archs[@]}"; do codes+=(-gencode "arch=compute_$arch,code=sm_$arch"); done
  local built_for="sm_${archs[*]} and PTX of compute_${archs[0]}"
  "${NVCC:-nvcc}" -std=c++20 -O3 -lineinfo -I"$root" "${codes[@]}" "-DFLASH_BUILT_FOR=\"$built_for\"" -t 0 \
    -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden,-Wall -MD -MF "$out.d" -MT "$out" "$@" -shared "$source" -o "$out" \
    >"$report" 2>&1 || { cat "$report" >&2; exit 1; }
  # What makes a kernel slow without a word elsewhere: registers in memory, and wgmma made to wait for each other. Up to
  # 128 bytes a thread pass: a kernel that uses all 255 registers parks a few of them once a tile, which no timing shows.
  if awk '/bytes spill/ { for (i = 4; i < NF; ++i) if ($i == "bytes" && $(i + 1) == "spill" && $(i - 1) > 128) print }
          /C75[0-9][0-9]|C76[0-9][0-9]/' "$report" | grep . >&2; then
    echo "$source: nvcc's report, $report, shows spilled registers or serialised instructions" >&2
    rm -f "$out"
    exit 1
  fi
}

"$side" "$@"
