#!/usr/bin/env bash
# Installs Holdfast beside TensorFlow in .venv, runs a small Keras training under it, and asks why it ended.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet . 'tensorflow-cpu>=2.18,<3'
.venv/bin/holdfast run .venv/bin/python examples/train_digits.py || echo "(exit code $?)"
.venv/bin/holdfast why
