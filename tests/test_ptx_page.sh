#!/usr/bin/env bash
# docs/ptx.md is what its generator prints from the wrappers and their layouts, and names every wrapper.
#   test_ptx_page.sh [--update]      writes the page instead
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
page=$root/docs/ptx.md
made=$(mktemp)
trap 'rm -f "$made"' EXIT
program=${FLASH_BUILD_DIR:-$root/build/cpu}/tests/ptx_page
[[ -x $program ]] || { echo "$program is not built: ./flashsteps test --quick builds it" >&2; exit 2; }
"$program" >"$made"

if [[ ${1:-} == --update ]]; then
  cp "$made" "$page"
  exit
fi
if ! diff -u "$page" "$made"; then
  echo "docs/ptx.md is not what docs/ptx_page.cpp prints: bash tests/test_ptx_page.sh --update"
  exit 1
fi
grep -hoP '^FLASH_PTX .*?\K\w+(?=\()' "$root"/cuda/ptx/*.hpp | sort -u | while read -r wrapper; do
  if ! grep -qF "**\`$wrapper\`**" "$page"; then
    echo "docs/ptx.md does not name ptx::$wrapper: add its file to docs/ptx_page.cpp"
    exit 1
  fi
done
