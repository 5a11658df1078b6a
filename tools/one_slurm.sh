#!/usr/bin/env bash
# Runs a command under a Slurm of this machine alone: `tools/one_slurm.sh FOLDER COMMAND...`, as root. In COMMAND srun, sbatch and sinfo work.
#
# Debian's packages are fetched and unpacked below FOLDER, and laid over /usr in namespaces of their own: nothing is installed and no
# process stays. The controller and the one node believe each other without munge.
set -euo pipefail
[ $# -ge 2 ] && [ "$(id -u)" -eq 0 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$1"
home=$(realpath "$1")
shift

if [ ! -e "$home/unpacked" ]; then
  mkdir -p "$home/archives/partial" "$home/root"
  apt-get -qq -y --no-install-recommends --download-only -o "Dir::Cache::archives=$home/archives" install slurmctld slurmd slurm-client >/dev/null
  for package in "$home"/archives/*.deb; do dpkg -x "$package" "$home/root"; done
  # Debian's alternatives name the programs, but only when they are installed.
  for name in slurmctld slurmd slurmstepd; do ln -sf $name-wlm "$home/root/usr/sbin/$name"; done
  touch "$home/unpacked"
fi

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
mkdir "$run/state" "$run/spool"
cat >"$run/slurm.conf" <<TEXT
ClusterName=one
SlurmctldHost=localhost
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
StateSaveLocation=$run/state
SlurmdSpoolDir=$run/spool
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.pid
SlurmdParameters=config_overrides
NodeName=localhost NodeHostname=$(hostname) NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes=localhost Default=YES OverSubscribe=FORCE
TEXT

export SLURM_CONF=$run/slurm.conf
unshare --mount --pid --fork --kill-child --mount-proc --propagation private bash -c '
  mount -t overlay overlay -o "lowerdir=$0/root/usr:/usr" /usr
  run=${SLURM_CONF%/*}
  slurmctld -D >"$run/slurmctld.log" 2>&1 &
  controller=$!
  slurmd -D -N localhost >"$run/slurmd.log" 2>&1 &
  node=$!
  trap "kill $controller $node; wait" EXIT
  until sinfo -h -o %T 2>/dev/null | grep -qE "idle|mixed"; do
    kill -0 $controller && kill -0 $node || { cat "$run"/*.log >&2; exit 1; }
    sleep 0.2
  done
  "$@"' "$home" "$@"
