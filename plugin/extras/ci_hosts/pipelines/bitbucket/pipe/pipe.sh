#!/usr/bin/env bash
# The entry point of the pipe's image. INCONCLUSIVE=pass lets exit code 3 pass: not before a deployment.
set -euo pipefail

export TUNEGATE_DEFAULT_BRANCH="${DEFAULT_BRANCH:-main}"
words=(run --ci bitbucket --comment "${COMMENT:-never}")
words+=(--config "${CONFIG:-tunegate.yaml}" --out "${OUT:-test-results/tunegate}")
if [ "${INCONCLUSIVE:-fail}" != pass ]; then
  # The process becomes tunegate's: a stopped pipeline reaches it.
  exec tunegate "${words[@]}"
fi
tunegate "${words[@]}" &
trap 'kill -TERM "$!"' INT TERM
code=0
wait "$!" || code=$?
while kill -0 "$!" 2>/dev/null; do
  code=0
  wait "$!" || code=$?
done
if [ "$code" -ne 3 ]; then exit "$code"; fi
echo 'tunegate: inconclusive'
