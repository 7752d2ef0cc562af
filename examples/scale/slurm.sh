#!/bin/bash
# An evaluation as an array of jobs, one a shard. docs/scale.md says how to run it.
#SBATCH --job-name=eval
#SBATCH --array=1-20
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=eval-%a.log
set -euo pipefail

# Not SLURM_ARRAY_TASK_COUNT: that is smaller when some shards alone are queued again.
shards=20

# Lines such as ANTHROPIC_API_KEY=…; nobody else may read the file (chmod 600).
if [[ -f "${KEYS:-}" ]]; then
  set -a
  source "$KEYS"
  set +a
fi

exec hermitcrab eval "$SUITE" ${OPTIONS:-} \
  --out "$RUN/shard-$SLURM_ARRAY_TASK_ID" \
  --shard "$SLURM_ARRAY_TASK_ID/$shards" \
  --seed "$SEED" --jobs 16 --resume
