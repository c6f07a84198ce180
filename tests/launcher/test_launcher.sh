#!/usr/bin/env bash
# label: full
# The launcher's contract, on a copy of it with a program of ten lines and package tools that only pretend.
set -uo pipefail

here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree="$scratch/a tree"
fake=$scratch/fake
mkdir -p "$tree" "$fake" "$scratch/elsewhere"
cp "$here/../../flashsteps" "$here/../../CMakePresets.json" "$tree"
cp "$here/program/"* "$tree"
cp "$here/fake/"* "$fake"
chmod +x "$fake"/*
export PATH=$fake:$PATH FAKE_ABSENT="" FAKE_UNAVAILABLE="" FAKE_LOG=$scratch/apt.log
cd "$scratch/elsewhere" || exit 1
failed=0 passed=0

start() {  # arguments: starts the launcher; leaves out, err and status
  status=0
  "$tree/flashsteps" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
  out=$(<"$scratch/out") err=$(<"$scratch/err")
}

expect() {  # what, condition
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n  status %s\n  out: %s\n  err: %s\n' "$1" "$status" "$out" "$err"
  fi
}

is() { [[ $1 == "$2" ]]; }
holds() { [[ $1 == *"$2"* ]]; }
one_sentence() { [[ $(wc -l <"$scratch/err") == 1 && $err == 'flashsteps: '* ]]; }
faster_than() { [[ $((10#${EPOCHREALTIME/./} - 10#${began/./})) -lt $1 ]]; }  # microseconds

# ---- first start: builds, aloud on standard error alone
start tour
expect "the first start succeeds" is "$status" 0
expect "the first start says on standard error that it builds" holds "$err" "flashsteps: building in"
expect "standard output is the program's alone" is "$out" "$PWD
<tour>"

# ---- second start
began=$EPOCHREALTIME
start tour
expect "the second start takes less than 2 s" faster_than 2000000
expect "the second start says nothing" is "$err" ""
expect "the program runs in the caller's folder" is "${out%%$'\n'*}" "$scratch/elsewhere"

start run 'a  b' '*' '' "it's" '--x=$HOME' '-'
expect "arguments pass through untouched" is "$out" "$PWD
<run>
<a  b>
<*>
<>
<it's>
<--x=\$HOME>
<->"
start exit 7
expect "the exit status passes through" is "$status" 7

ln -s "$tree/flashsteps" link
began=$(./link tour 2>&1)
expect "a symbolic link works" is "$began" "$PWD
<tour>"

# ---- first starts at the same time
rm -r "$tree/build"
for i in 1 2 3; do "$tree/flashsteps" tour >"$scratch/out$i" 2>/dev/null </dev/null & done
wait
for i in 1 2 3; do expect "start $i of three at once" is "$(<"$scratch/out$i")" "$PWD
<tour>"; done

# ---- packages
export FAKE_ABSENT="gnuplot-nox libcli11-dev"
start theorem2 --plot f.svg
expect "what is missing gets installed" is "$status" 0
expect "only what is missing" holds "$(<"$FAKE_LOG")" "install -y --no-install-recommends libcli11-dev gnuplot-nox"
expect "installing is no part of standard output" is "$out" "$PWD
<theorem2>
<--plot>
<f.svg>"
: >"$FAKE_LOG"
FAKE_ABSENT=gnuplot-nox start tour
expect "a command installs nothing that another one needs" is "$(<"$FAKE_LOG")" ""

FAKE_UNAVAILABLE=libcli11-dev start tour
expect "a package that can't be had: exit 2" is "$status" 2
expect "a package that can't be had is named" holds "$err" "needs the package libcli11-dev, which apt-get could not"
expect "nothing runs without it" is "$out" ""

# the same without the right to install: no sudo on PATH, and id says 1000
mkdir "$scratch/user"
for tool in bash cat dirname dpkg-query env flock grep mkdir readlink; do
  ln -s "$(command -v $tool)" "$scratch/user/$tool"
done
ln -s "$fake/apt-get" "$scratch/user/apt-get"
printf '#!/bin/sh\necho 1000\n' >"$scratch/user/id" && chmod +x "$scratch/user/id"
PATH=$scratch/user start tour
expect "no root and no sudo: exit 2" is "$status" 2
expect "no root and no sudo: one sentence" one_sentence
expect "no root and no sudo: the line to run" holds "$err" "apt-get install libcli11-dev"

# neither Debian nor Ubuntu
rm "$scratch/user/apt-get" "$scratch/user/dpkg-query"
PATH=$scratch/user start tour
expect "no apt-get and no compiler: exit 2" is "$status" 2
expect "no apt-get and no compiler: one sentence" one_sentence
expect "no apt-get: the packages' names" holds "$err" "nlohmann-json3-dev"
export FAKE_ABSENT=""

# ---- bad input and a program that does not compile
start test --fast
expect "test refuses what it does not know: exit 2" is "$status" 2
expect "test refuses what it does not know: one sentence" one_sentence

start notebooks --update
expect "notebooks refuses what it does not know: exit 2" is "$status" 2
expect "notebooks refuses what it does not know: one sentence" one_sentence

# ---- no Python for the notebooks
printf '#!/bin/sh\necho no venv >&2; exit 1\n' >"$fake/python3" && chmod +x "$fake/python3"
mkdir "$tree/notebooks-cling" && echo cppyy >"$tree/notebooks-cling/requirements.txt"
start test
expect "the tests run without the notebooks' Python" is "$status" 0
expect "they say that some are skipped" holds "$err" "so the tests that need it are skipped"
start test --deep
expect "the deep tests want it: exit 2" is "$status" 2
expect "the deep tests want it, and say so" holds "$err" "could not be made (the reason is above): mend it"
start notebooks --run
expect "and so do the notebooks" is "$status" 2
rm "$fake/python3"

echo 'no C++' >>"$tree/main.cpp"
start tour
expect "a failed build: exit 2" is "$status" 2
expect "a failed build: where the log is" holds "$err" "$tree/build/cpu.log"
expect "a failed build runs no older program" is "$out" ""

printf '%d passed, %d failed\n' $passed $failed
[[ $failed == 0 ]]
