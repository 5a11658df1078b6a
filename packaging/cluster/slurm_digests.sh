#!/bin/bash
# Digests of a run's ranks as a Slurm array, then one answer. Adapt the five lines below; then:
#   jid=$(sbatch --parsable --array=0-156 slurm_digests.sh digest)
#   sbatch --dependency=afterok:$jid slurm_digests.sh explain
# A task that is killed or requeued goes on where it stopped; submitting the array again makes only what is missing.
#SBATCH --job-name=stageline
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=01:00:00
set -euo pipefail
LOGS=${LOGS:-/shared/run/logs}        # seen by all nodes under one path
DIGESTS=${DIGESTS:-/shared/run/digests}
SHARE=${SHARE:-64}                    # ranks of one task: 157 tasks for 10 000 ranks
STAGELINE=${STAGELINE:-stageline}

case ${1:-digest} in
  digest)
    first=$((SLURM_ARRAY_TASK_ID * SHARE))
    exec "$STAGELINE" digest "$LOGS" -o "$DIGESTS" --ranks "$first:$((first + SHARE - 1))" --threads "$SLURM_CPUS_PER_TASK"
    ;;
  explain)
    "$STAGELINE" explain "$DIGESTS"
    exec "$STAGELINE" report "$DIGESTS" -o "${REPORT:-/shared/run/report.html}" --title "$(basename "$LOGS")"
    ;;
esac
