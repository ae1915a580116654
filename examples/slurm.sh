#!/bin/bash
# A job of two machines with eight GPUs each, one rank a GPU. Submit it with: sbatch slurm.sh
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=0                  # all of the machine's memory; a smaller limit kills the rank that goes beyond it
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@300        # five minutes before the time is over: saved first, where a checkpoint can be kept
#SBATCH --requeue
#SBATCH --open-mode=append

export HOLDFAST_DIR="$SLURM_SUBMIT_DIR/.holdfast"        # on storage that all machines see
export MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))

# The script calls init_process_group(), which reads RANK, WORLD_SIZE and LOCAL_RANK.
srun --kill-on-bad-exit=1 bash -c '
    export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
    exec holdfast run --memory "$(( $(free -g | awk "/Mem:/ {print \$2}") / SLURM_NTASKS_PER_NODE - 2 ))G" python train.py
'
code=$?
if [ "$code" -ne 0 ]; then
    holdfast why                 # which rank was first, and why
fi
exit "$code"
