#!/bin/bash
# What needs a GPU, on a machine without a network: the job of `gpu_job.py`, which says what it does.
#
#   OUT=results benchmarks/gpu.sh [FOLDER WITH part-00, part-01, ...] [-- OPTIONS OF gpu_job.py]
#
# Such a machine has Python with numpy, scipy, scikit-learn, onnx and onnxruntime, and nvcc. The parts
# hold the rest (apache-tvm, msgspec, zstandard, cryptography, cupti-python with pyelftools, pytest
# and hypothesis for the tests of a device, ...: BRINGS in gpu_rehearsal.py), as one xz archive of a
# site directory. Without a folder, what is installed is used.
# Results go to $OUT, or to .gpu-results. Few files come back from a lease, so there are three:
# gpu.json and steps.tar.gz after each step, and unpacking.log.
#
# `benchmarks/gpu.sh -- --rehearse` tries all that beforehand, without a GPU: see gpu_rehearsal.py.
set -uo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-.gpu-results}"
mkdir -p "$out"
export PYTHONUNBUFFERED=1 TVM_BIND_THREADS=0
unset PYTHONDONTWRITEBYTECODE
parts=
if [ $# -gt 0 ] && [ "$1" != -- ]; then parts=$1; shift; fi
[ "${1:-}" = -- ] && shift
[ "${1:-}" = --rehearse ] && exec python3 -m benchmarks.gpu_rehearsal
if [ -n "$parts" ]; then
  site=$(mktemp -d)
  # Python reads xz itself, and `tar` may lack it. What is damaged costs what lies behind it only.
  # A slow machine (a rehearsal) sets the variable: a part that is missing costs every step.
  cat "$parts"/part-* | timeout "${UNPACKING_SECONDS:-90}" python3 -c \
    'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz").extractall(sys.argv[1])' \
    "$site" >"$out/unpacking.log" 2>&1 || echo "gpu.sh: not all was unpacked: $(tail -1 "$out/unpacking.log")"
  # Else each process compiles all that it imports.
  timeout 60 python3 -m compileall -q -j 0 "$site" plugin cache >>"$out/unpacking.log" 2>&1
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$PWD:$PWD/plugin:$PWD/cache:$PWD/action"
# A driver in trouble does not answer.
GPU_MACHINE=$(timeout -k 5 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
export GPU_MACHINE
exec python3 -m benchmarks.gpu_job --out "$out" --spent "$SECONDS" "$@"
