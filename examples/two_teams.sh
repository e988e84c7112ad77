#!/usr/bin/env bash
# Two repositories of different teams share one bucket: the second team's first run finds all its
# tasks in what the first has learned. Runs a real S3 server on this machine; takes about three minutes.
#
#     make test >/dev/null   # once: makes .venv
#     PATH=$PWD/.venv/bin:$PATH examples/two_teams.sh
set -euo pipefail

place=$(mktemp -d)
port=${PORT:-5055}
export HOME=$place AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_EC2_METADATA_DISABLED=true
moto_server -H 127.0.0.1 -p "$port" >/dev/null 2>&1 &
trap 'kill %1; rm -rf "$place"' EXIT
until python -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null; do sleep 0.2; done
python - "$port" <<'PYTHON'
import sys

import boto3

boto3.client("s3", endpoint_url=f"http://127.0.0.1:{sys.argv[1]}", region_name="us-east-1").create_bucket(Bucket="tuning")
PYTHON

team() { # name: a repository with its model, made by model.py, and the shared bucket
  mkdir -p "$place/$1" && cd "$place/$1" && git init -q -b main
  python "$place/model.py" "$1"
  cat >tunegate.yaml <<YAML
models:
  - path: "*.onnx"
cache:
  url: s3://tuning/all
  endpoint-url: http://127.0.0.1:$port
  region: us-east-1
YAML
  git add . && git -c user.name=t -c user.email=t@example.com commit -qm "The model"
}

cat >"$place/model.py" <<'PYTHON'
"""Vision ships a classifier; search retrained it, with one layer narrower."""

import sys

import onnx
from onnx import numpy_helper

from tunegate.models.light_models import seeded_light

NARROW = 40
model = seeded_light("squeezenet", seed=1 if sys.argv[1] == "search" else 0)
weights = {tensor.name: tensor for tensor in model.graph.initializer}


def cut(node: str, axis: int) -> None:
    """Keep the first channels of a convolution: 0 its outputs, 1 its inputs."""
    for name in next(n for n in model.graph.node if n.name == node).input[1 : 3 - axis]:
        values = numpy_helper.to_array(weights[name]).take(range(NARROW), axis)
        weights[name].CopyFrom(numpy_helper.from_array(values, name))


if sys.argv[1] == "search":
    cut("fire8/squeeze1x1", axis=0)
    cut("fire8/expand1x1", axis=1)
    cut("fire8/expand3x3", axis=1)
    del model.graph.value_info[:]
onnx.save(model, f"{sys.argv[1]}.onnx")
PYTHON

team vision
echo "== vision tunes its model, two minutes at most"
tunegate run --minutes "${MINUTES:-2}" 2>"$place/log"
grep -A1 "Tuning:" "$place/log"
tunegate cache compact

team search
echo "== search looks its tasks up for the first time"
tunegate plan --json | python -c '
import collections, json, sys

tasks = json.load(sys.stdin)["resolution"]["tasks"]
print(dict(collections.Counter(task["lookup"]["type"] for task in tasks)), "of", len(tasks), "tasks")
'
