#!/usr/bin/env bash
# On the GPU machine (Python 3.12, PyTorch there, no network): joins the pieces of build_pieces.sh and makes an environment of
# them. Holdfast runs from this checkout. `. VENV/cuda.env` comes before each program that uses TensorFlow, and only before
# those: PyTorch brings CUDA libraries of its own.
#
#   set_up.sh VENV FOLDER
set -euo pipefail
if [ $# -ne 2 ] || [ ! -d "$2" ]; then
    echo "usage: set_up.sh VENV FOLDER-WITH-PIECES" >&2
    exit 2
fi
project=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
venv=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
# Where the system's Python is not 3.12, PYTHON names one that is.
python=${PYTHON:-python3}
if [ "$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")')" != 3.12 ]; then
    echo "the wheels are for Python 3.12, and $python is $("$python" --version); set PYTHON to one" >&2
    exit 1
fi

if ls "$folder"/p.* > /dev/null 2>&1; then
    if [ -f "$folder/checksums" ]; then
        (cd "$folder" && sha256sum --quiet --check checksums)
    fi
    mkdir -p "$folder/wheels"
    cat "$folder"/p.* | tar --extract --file - --directory "$folder/wheels"
    rm "$folder"/p.*
fi

"$python" -m venv --system-site-packages "$venv"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# NumPy and PyTorch of the machine, where they are not in the system's own folder; and this checkout.
{
    "$python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))' || true
    echo "$project/src"
} > "$site/holdfast-gpu.pth"
"$venv/bin/python" -m pip install --quiet --no-index --no-deps "$folder"/wheels/*.whl

# TensorFlow drops the GPU when a library cannot be opened, even one that nobody calls: empty ones stand in.
empty=$venv/empty
mkdir -p "$empty"
echo 'int holdfast_has_no_such_library;' > "$empty/empty.c"
for library in libcufft.so.11 libcusolver.so.11 libcusparse.so.12 libnccl.so.2; do
    cc -shared -fPIC -Wl,-soname,"$library" -o "$empty/$library" "$empty/empty.c"
done
cuda=$site/nvidia
libraries=$(find "$cuda" -mindepth 2 -maxdepth 2 -name lib -not -path '*/nccl/*' | sort | tr '\n' ':')
cat > "$venv/cuda.env" <<END
export LD_LIBRARY_PATH=$libraries$empty
export XLA_FLAGS=--xla_gpu_cuda_data_dir=$cuda/cuda_nvcc
export PATH=$venv/bin:$cuda/cuda_nvcc/bin:\$PATH
END

. "$venv/cuda.env"
TF_CPP_MIN_LOG_LEVEL=2 "$venv/bin/python" - <<'PYTHON'
import tensorflow as tf

cards = tf.config.list_physical_devices("GPU")
print("TensorFlow", tf.__version__, "sees", len(cards), "GPUs; 512 x 512 ones multiplied:", float(tf.reduce_sum(tf.ones((512, 512)) @ tf.ones((512, 512)))))
PYTHON
