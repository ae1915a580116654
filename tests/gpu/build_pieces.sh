#!/usr/bin/env bash
# TensorFlow with its CUDA 12 libraries, and what the tests need beside it, for Python 3.12: downloaded here and cut into pieces
# of 57 MB that can be carried to a GPU machine without a network. There set_up.sh joins them.
#
#   build_pieces.sh FOLDER        FOLDER/p.000, p.001, … and their checksums
set -euo pipefail
if [ $# -ne 1 ]; then
    echo "usage: build_pieces.sh FOLDER" >&2
    exit 2
fi
mkdir -p "$1"
cd "$1"
if [ -n "$(ls -A)" ]; then
    echo "$1 is not empty: name a new folder" >&2
    exit 2
fi

fetch() {
    python3 -m pip download --quiet --only-binary=:all: --python-version 3.12 --implementation cp --dest wheels \
        --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_27_x86_64 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_34_x86_64 "$@"
}

fetch 'tensorflow[and-cuda]==2.21.0'
fetch pytest pytest-timeout hypothesis psutil nvidia-ml-py jeepney transformers
# These ask for PyTorch, which is on the GPU machine and would be gigabytes more.
fetch --no-deps accelerate lightning lightning-utilities pytorch-lightning torchmetrics

# Left out: libraries that TensorFlow opens by name only and our programs never call (set_up.sh puts empty ones in their
# place), a compiler for C that nothing here uses, and NumPy, which comes with the PyTorch that is there.
rm -f wheels/nvidia_{cusparse,nccl,cusolver,cufft,cuda_nvrtc}*.whl wheels/libclang* wheels/numpy-*

tar --create --file - --directory wheels . | split --bytes 57000000 --numeric-suffixes --suffix-length 3 - p.
rm -r wheels
sha256sum p.* > checksums
echo "$(ls p.* | wc -l) pieces, $(du -sh . | cut -f1) in all"
