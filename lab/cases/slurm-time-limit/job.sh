#!/bin/bash
#SBATCH --job-name=autoencoder
#SBATCH --time=00:01:00
echo "job 4711 starts"
timeout 35 python train.py
code=$?
if [ $code -eq 124 ]; then
    echo "slurmstepd: error: *** STEP 4711.0 ON node07 CANCELLED AT 2026-03-04T11:20:31 DUE TO TIME LIMIT ***" >&2
fi
exit $code
