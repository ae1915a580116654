#!/usr/bin/env bash
# Installs Holdfast and TensorFlow into .venv of this checkout, nowhere else, and runs examples/first_run.py.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -x .venv/bin/python ]; then
    for python in python3 python3.14 python3.13 python3.12 python3.11 none; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
    done
    [ "$python" != none ] || { echo "first_run: Python 3.11 or later is needed, and none was found" >&2; exit 2; }
    "$python" -m venv .venv
fi
# For other processors than x86 the plain package is the one without a GPU's libraries.
[ "$(uname -m)" = x86_64 ] && tensorflow=tensorflow-cpu || tensorflow=tensorflow
echo "first_run: installing Holdfast and $tensorflow into .venv (about 250 MB the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable . "$tensorflow>=2.18,<3"
exec .venv/bin/python -m examples.first_run
