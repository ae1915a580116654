#!/bin/bash
set -e
export OMP_NUM_THREADS=2
echo "starting on $(uname -n)"
python train.py
echo "finished"
