#!/usr/bin/env bash
# README's two commands on bare systems, as a stranger types them. Run by ./dev fresh, as root.
#
# A bare system is what debootstrap makes (minbase, git, certificates) in a folder that is gone afterwards. It sees neither this
# machine's files nor its programs: the commit comes as a bundle. How packages are fetched here (mirror, proxy, certificates) is
# carried in, for that belongs to the network and not to the system. All mounts are in a namespace of their own and end with it.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
./dev fresh [debian12] [ubuntu24.04] [--as root|user] [--only demo|test] [--run COMMAND] [--mirror URL] [--keep]
  without names both distributions; without --as both, the user with sudo; without --only both commands of the README
  --run COMMAND   types this in the clone instead
  --mirror URL    of the distribution's packages; else this machine's own, or the distribution's
  --keep          leaves the bare system where it is, to look at
TEXT
}
exec 3>&2  # past the logs
say() { printf '\033[1m%s\033[0m\n' "$*" >&3; }
refuse() { say "$*"; exit 2; }

names=() whos=() commands=() mirror='' keep=''
while [ $# -gt 0 ]; do
  case $1 in
    debian12|ubuntu24.04) names+=("$1") ;;
    --as) case ${2:-} in root|user) whos+=("$2"); shift ;; *) usage >&2; exit 2 ;; esac ;;
    --only) case ${2:-} in demo|test) commands+=("./dev $2"); shift ;; *) usage >&2; exit 2 ;; esac ;;
    --run) commands+=("${2:?}"); shift ;;
    --mirror) mirror=${2:?}; shift ;;
    --keep) keep=1 ;;
    -h|--help) usage; exit ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[ ${#names[@]} -gt 0 ] || names=(debian12 ubuntu24.04)
[ ${#whos[@]} -gt 0 ] || whos=(root user)
[ ${#commands[@]} -gt 0 ] || commands=('./dev demo' './dev test')

[ "$(id -u)" -eq 0 ] || refuse "a bare system is made by root: ./dev fresh asks sudo, and sudo is not here"
unshare --mount --pid --ipc --fork true 2>/dev/null ||
  refuse "a bare system needs the right to mount, which this container does not give: start it with --privileged, or use a machine"

mkdir -p build
work=$(mktemp -d "${TMPDIR:-$PWD/build}/fresh.XXXXXX")
logs=$PWD/build/fresh
mkdir -p "$logs"
child=''
# The first process of a namespace takes all others and every mount with it.
tidy_up() {
  trap '' INT TERM HUP
  [ -z "$child" ] || { kill -KILL "$child" 2>/dev/null || true; wait "$child" 2>/dev/null || true; }
  if [ -n "$keep" ]; then say "kept: $work"
  else for _ in 1 2 3 4 5; do rm -rf --one-file-system "$work" 2>/dev/null && break; sleep 0.5; done; fi
  [ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$logs"
}
trap tidy_up EXIT
trap 'say "stopped"; exit 130' INT TERM HUP

# Bash waits for a program before it heeds a signal, unless the program runs beside it.
alone() {
  "$@" &
  child=$!
  local code=0
  wait "$child" || code=$?
  child=''
  return $code
}
in_namespace() { exec unshare --mount --pid --ipc --fork --kill-child "$@"; }

# Settings of this machine's network that programs read from the environment.
carried=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while IFS='=' read -r -d '' key value; do
  case ${key,,} in
    http_proxy|https_proxy|ftp_proxy|all_proxy|no_proxy|npm_config_*registry|npm_config_*proxy|npm_config_cafile|npm_config_strict_ssl|\
    pip_index_url|pip_extra_index_url|pip_proxy|pip_cert|pip_trusted_host|node_extra_ca_certs|ssl_cert_file|ssl_cert_dir|curl_ca_bundle|\
    requests_ca_bundle|git_ssl_cainfo) carried+=("$key=$value") ;;
  esac
done < <(env -0)

# TREE WHO COMMAND: types a command in the tree, in the folder and with the variables that WHO finds after logging in. Takes the place
# of the shell that calls it, so that who ends that process ends all of it.
type_in() {
  local home=/root
  [ "$2" = root ] || home=/home/$2
  # shellcheck disable=SC2016
  exec env -i "${carried[@]}" HOME="$home" USER="$2" LOGNAME="$2" TERM=dumb unshare --mount --pid --ipc --fork --kill-child bash -c '
    set -e
    tree=$0 who=$1
    mount -t proc proc "$tree/proc"
    mount -t sysfs -o ro sysfs "$tree/sys"
    mount -t tmpfs -o mode=755 dev "$tree/dev"
    for node in null zero full random urandom tty; do : >"$tree/dev/$node"; mount --bind "/dev/$node" "$tree/dev/$node"; done
    mkdir "$tree/dev/pts" "$tree/dev/shm"
    mount -t tmpfs -o mode=1777 shm "$tree/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$tree/dev/pts"
    ln -s pts/ptmx "$tree/dev/ptmx"
    ln -s /proc/self/fd "$tree/dev/fd"
    for i in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${i%:*}" "$tree/dev/${i#*:}"; done
    exec chroot --userspec="$who" "$tree" bash -c "cd; $2"' "$@" </dev/null
}

# How packages are fetched here, for the bare system: addresses, proxies, certificates, names. Copies, never shown.
carry_settings() {
  local tree=$1 entry file
  cp -L /etc/resolv.conf /etc/hosts "$tree/etc/"
  if [ -d /usr/local/share/ca-certificates ]; then
    mkdir -p "$tree/usr/local/share/ca-certificates"
    cp -rL /usr/local/share/ca-certificates/. "$tree/usr/local/share/ca-certificates/"
  fi
  for entry in "${carried[@]}"; do
    file=${entry#*=}
    case $file in /*.crt|/*.pem|/*.cer) [ -e "$tree$file" ] || [ ! -f "$file" ] || install -D -m 644 "$file" "$tree$file" ;; esac
  done
  if command -v apt-config >/dev/null; then
    apt-config dump | grep -E '^Acquire::([A-Za-z]+::(Proxy|CaInfo|Verify)|Check-Valid-Until|Check-Date|ForceIPv[46])' >"$tree/etc/apt/apt.conf.d/90carried" || true
  fi
  for entry in "${carried[@]}"; do  # sudo keeps no proxy of the environment
    case ${entry,,} in http_proxy=?*|https_proxy=?*)
      file=${entry%%_*}
      echo "Acquire::${file,,}::Proxy \"${entry#*=}\";" >>"$tree/etc/apt/apt.conf.d/90carried" ;;
    esac
  done
  for file in /etc/apt/auth.conf /etc/apt/auth.conf.d; do [ ! -e "$file" ] || cp -r "$file" "$tree/etc/apt/"; done
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$tree/etc/"
  cat /etc/npmrc /usr/etc/npmrc /usr/local/etc/npmrc ~/.npmrc 2>/dev/null |
    grep -E '^(registry|proxy|https-proxy|noproxy|ca|cafile|strict-ssl|@[^:]*:registry|//)' >"$tree/etc/skel/.npmrc" || true
  chmod 600 "$tree/etc/skel/.npmrc"
  cp -p "$tree/etc/skel/.npmrc" "$tree/root/"
}

# Where this machine has packages of a release from, as lines of sources.list; none where it is another release.
own_sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
    awk -v suite="$1" '$2 == suite || index($2, suite "-") == 1 {print "deb " $0}' | sort -u
}
# What debootstrap's description of a distribution says; nothing where it is debootstrap's own default.
default_mirror_of() {  # script, suite
  # shellcheck disable=SC1090,SC2034
  (ARCH=$(dpkg --print-architecture) SUITE=$2; default_mirror() { echo "$1"; exit; }; . "$1") 2>/dev/null || true
}
sources_of() {  # suite, mirror, components
  if [ -z "$mirror" ] && [ -n "$(own_sources "$1")" ]; then
    own_sources "$1"
    return
  fi
  printf 'deb %s %s\n' "$2 $1" "$3" "$2 $1-updates" "$3"
  if [ "$1" = noble ]; then echo "deb $2 $1-security $3"; else echo "deb ${2%/}-security $1-security $3"; fi
}

# Makes $work/bare; 3 where the distribution cannot be reached.
make_bare() {  # name, log
  local suite components=main script='' at=$mirror
  case $1 in
    debian12) suite=bookworm ;;
    ubuntu24.04) suite=noble components='main universe' ;;
  esac
  # What an older debootstrap does not know by name is made as its forebears were.
  script=/usr/share/debootstrap/scripts/$suite
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/$([ "$suite" = noble ] && echo gutsy || echo sid)
  [ -n "$at" ] || at=$(own_sources "$suite" | awk -v suite="$suite" '$3 == suite {print $2; exit}')
  [ -n "$at" ] || at=$(default_mirror_of "$script" "$suite")
  local given=()
  [ -z "$at" ] || given=("$at" "$script")
  if ! alone in_namespace debootstrap --variant=minbase --include=git,ca-certificates ${components:+--components="${components// /,}"} \
      "$suite" "$work/bare" "${given[@]}" >"$2" 2>&1; then
    grep -qE 'Failed getting release|Invalid Release|unknown-suite|Couldn.t (download|resolve)' "$2" && return 3
    return 1
  fi
  ! grep -q 'Cannot check Release signature' "$2" || say "$1: signatures of its packages are not checked, for this machine has no keyring of them"
  at=$(awk '$1 == "deb" {print $2; exit}' "$work/bare/etc/apt/sources.list")
  sources_of "$suite" "$at" "$components" >"$work/bare/etc/apt/sources.list"
  carry_settings "$work/bare"
  alone type_in "$work/bare" root 'update-ca-certificates' >>"$2" 2>&1
}

minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain)" ] || say "what is not committed is not tried: the clone is of $commit"
git bundle create --quiet "$work/commit.bundle" HEAD

failed=0 tried=0 unreached=()
summary=()
for name in "${names[@]}"; do
  log=$logs/$name.system.log code=0
  say "$name: making a bare system ($log)"
  make_bare "$name" "$log" || code=$?
  if [ "$code" -ne 0 ]; then
    if [ "$code" -eq 3 ]; then
      unreached+=("$name")
      say "$name cannot be reached from here ($(grep -E '^E: ' "$log" | tail -1 | sed 's/^E: //')); --mirror URL names another place"
    else
      tail -20 "$log" >&2
      say "$name: no bare system could be made: $log"
      failed=1
    fi
    rm -rf --one-file-system "$work/bare"
    continue
  fi
  for who in "${whos[@]}"; do
    tree=$work/$who account=root clone=stageline
    rm -rf --one-file-system "$tree"
    cp -a "$work/bare" "$tree"
    cp "$work/commit.bundle" "$tree/var/tmp/"
    if [ "$who" = user ]; then
      account=stranger clone='my runs 流水线/stageline'  # people's folders have such names
      alone type_in "$tree" root "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends sudo &&
        useradd --create-home --shell /bin/bash $account && echo '$account ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$account" >>"$log" 2>&1 ||
        { tail -20 "$log" >&2; say "$name: no user could be made: $log"; failed=1; continue; }
    fi
    alone type_in "$tree" "$account" "git -c advice.detachedHead=false clone --quiet /var/tmp/commit.bundle '$clone'" >>"$log" 2>&1 ||
      { tail -20 "$log" >&2; say "$name: git could not clone there: $log"; failed=1; continue; }
    for command in "${commands[@]}"; do
      tried=$((tried + 1))
      case $command in './dev demo' | './dev test') short=${command#./dev } ;; *) short=run ;; esac
      log_of=$logs/$name.$who.$short.log
      say "$name as $who: $command ($log_of)"
      began=$SECONDS code=0
      alone type_in "$tree" "$account" "cd '$clone'; $command" >"$log_of" 2>&1 || code=$?
      line="$name as $who: $short: $(minutes $((SECONDS - began)))"
      if [ "$code" -ne 0 ]; then
        tail -40 "$log_of" >&2
        line+=", FAILED with $code: $log_of"
        failed=1
      fi
      say "$line"
      summary+=("$line")
    done
    [ -n "$keep" ] || rm -rf --one-file-system "$tree"
  done
  [ -n "$keep" ] || rm -rf --one-file-system "$work/bare"
done

say "$commit on bare systems, $(nproc) cores:"
printf '  %s\n' "${summary[@]}" ${unreached:+"not reached: ${unreached[*]}"}
[ "$tried" -gt 0 ] || failed=1
exit $failed
