#!/usr/bin/env bash
# All that is measured on a GPU: the tests, then the tables of TensorFlow, of PyTorch with Keras on it, and what a step costs.
# One that fails does not stop the others. Results are dated files under $OUT, or tests/gpu/results.
#
#   run_all.sh VENV [PART …]      tests, tensorflow, torch, overhead; by default all of them
set -uo pipefail
if [ $# -lt 1 ] || [ ! -x "$1/bin/python" ]; then
    echo "usage: run_all.sh VENV [tests|tensorflow|torch|overhead …]; VENV is what set_up.sh made" >&2
    exit 2
fi
venv=$(cd "$1" && pwd)
shift
parts=${*:-tests tensorflow torch overhead}
cd "$(dirname "$0")/../.."
results=${OUT:-tests/gpu/results}
mkdir -p "$results"
day=$(date --utc +%Y-%m-%d)
failed=0

# Its first argument says whose CUDA libraries are used: TensorFlow's come by cuda.env, PyTorch finds its own.
measure() {
    local whose=$1 name=$2
    shift 2
    echo "== $name: $*"
    (
        [ "$whose" = tensorflow ] && . "$venv/cuda.env"
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
        echo "$*"
        timeout --kill-after 10 "${PATIENCE_S:-540}" "$venv/bin/python" "$@"
    ) 2>&1 | tee "$results/$day-$name.txt"
    local code=${PIPESTATUS[0]}
    echo "exit $code" | tee -a "$results/$day-$name.txt"
    [ "$code" = 0 ] || failed=1
}

for part in $parts; do
    case $part in
    tests)
        measure tensorflow tests-tensorflow -m pytest tests/gpu/test_tensorflow_on_gpu.py -q -s -p no:cacheprovider
        measure torch tests-torch -m pytest tests/gpu/test_oom_on_gpu.py tests/gpu/test_run_on_a_gpu.py -q -s -p no:cacheprovider
        ;;
    tensorflow) measure tensorflow oom-tensorflow -m lab.oom --on tensorflow --jobs "${JOBS:-6}" ;;
    torch) measure torch oom-torch -m lab.oom --on cuda ;;
    overhead)
        measure tensorflow overhead-tensorflow -m bench.overhead --on tensorflow-gpu
        measure torch overhead-torch -m bench.overhead --on cuda --pairs 3 --turns 12
        ;;
    *)
        echo "no such part: $part (tests, tensorflow, torch, overhead)" >&2
        failed=2
        ;;
    esac
done
exit $failed
