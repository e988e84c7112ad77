#!/usr/bin/env bash
# Lets helion, Triton and FlashInfer share a directory through the cache of tunegate, each with its own package.
# Usage: plugin/extras/tuners/examples/try_tuners.sh [FOLDER]    (from the repository's root; no GPU; 7 GB of disk)
set -euo pipefail
repository=$PWD
place=${1:-$(mktemp -d)}
python3 -m venv "$place/environment"
bin=$place/environment/bin
"$bin/python" -m pip install -q "$repository" "$repository/plugin/extras/tuners" torch triton helion
"$bin/python" -m pip install -q --no-deps flashinfer-python   # its libraries are for GPUs, its cache is not
openssl genpkey -algorithm ed25519 -out "$place/key.pem"
TUNEGATE_SIGNING_KEY=$(cat "$place/key.pem")
export TUNEGATE_SIGNING_KEY
cd "$place"
"$bin/python" "$repository/plugin/extras/tuners/examples/try_tuners.py" "$place"
