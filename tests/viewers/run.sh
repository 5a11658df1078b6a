#!/bin/sh
# run.sh MAKE_EXPORTS FOLDER: writes the exports, then lets the trace processor judge them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node >/dev/null || { echo "skipped: node is missing"; exit 77; }
wasm=$(sh "$here/get_trace_processor.sh") || exit $?
mkdir -p "$2"
names=$("$1" "$2")
folder=$2
set --
STAGELINE_TRACE_PROCESSOR=$wasm
export STAGELINE_TRACE_PROCESSOR
for name in $names; do
  set -- "$@" "$folder/$name.json" "$folder/$name.pftrace" "$folder/$name.expect"
done
exec node "$here/validate_exports.mjs" "$@"
