#!/usr/bin/env bash
# Proves the recorder on a real GPU, part by part, and writes what was measured as a table for bench/README.md.
#
#   record/gpu/run.sh [-o FOLDER] [-p 2,3,5] [-r REPEATS] [--short]
#
# Needs a C++ compiler, Python 3.8, a CUDA driver; the parts of frameworks need torch besides and skip, with the reason, without. The
# library and the program are those of build/release unless STAGELINE_RECORD_LIBRARY and STAGELINE_BIN say others. Clocks, MIG and
# every other setting of the GPU stay as they are. Exit 0: every part that ran holds; 1: one does not; 2: nothing could run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/gpu
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=$2; shift 2 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
export STAGELINE_BIN=${STAGELINE_BIN:-$root/build/release/stageline}
export STAGELINE_RECORD_LIBRARY=${STAGELINE_RECORD_LIBRARY:-$root/build/release/record/libstageline_record.so}
for file in "$STAGELINE_BIN" "$STAGELINE_RECORD_LIBRARY"; do
  [ -e "$file" ] && continue
  echo "run.sh: $file is not there: ./dev build makes it, or STAGELINE_BIN and STAGELINE_RECORD_LIBRARY name others" >&2
  exit 2
done
mkdir -p "$out"
library=$(cd "$(dirname "$STAGELINE_RECORD_LIBRARY")" && pwd)
"${CXX:-c++}" -std=c++17 -O2 -Wall -I "$here/../include" "$here/device.cc" -o "$out/device" \
  "$STAGELINE_RECORD_LIBRARY" -Wl,-rpath,"$library" -ldl -pthread
exec python3 "$here/parts.py" --device "$out/device" -o "$out" ${arguments[@]+"${arguments[@]}"}
