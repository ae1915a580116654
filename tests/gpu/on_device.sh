#!/usr/bin/env bash
# Runs the GPU tests and the laboratory's PyTorch cases on a machine with an NVIDIA GPU and no network:
# wheels for its Python lie in carry/ (pip download --python-version 3.12 -d carry psutil nvidia-ml-py pytest …).
set -uo pipefail
cd "$(dirname "$0")/../.."
site=$(mktemp -d)
python3 -m pip install --quiet --no-index --find-links carry --target "$site" psutil nvidia-ml-py pytest pytest-timeout
export PYTHONPATH="$PWD/src:$site:$PWD"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
uname -r; python3 --version; stat -fc %T /sys/fs/cgroup
python3 -m pytest tests/gpu tests/run tests/probes -q -s -p no:cacheprovider "$@"
python3 -m lab $(python3 -m lab --list | awk '/^torch|^bash/ {print $1}')
