#!/bin/sh
# The whole device check in one call of under five minutes: Moshi and Qwen2.5-Omni of 7B, Whisper large-v3 in batches,
# the harness's own overhead. Random weights, no download. Prints a table and writes JSON.
#
#   tests/gpu/check.sh --out check.json                 # on a GPU
#   tests/gpu/check.sh --tiny --device cpu              # on any machine, in about a minute
#
# Needs PyTorch 2.11 or newer, transformers 5.17 or newer, numpy, msgspec, and for Moshi the package `moshi`. The
# harness itself need not be installed. PYTHON says which Python.
set -eu
cd "$(dirname "$0")/../.."
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" -m tests.gpu.check "$@"
