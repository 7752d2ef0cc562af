#!/bin/bash
# Reward 1 if every list of titles gives its slugs, else 0.
mkdir -p /logs/verifier
here=${0%/*}
reward=1
for titles in "$here"/*.titles; do
  if ! bash slugify.sh < "$titles" 2>&1 | diff "${titles%.titles}.slugs" -; then
    echo "wrong: ${titles##*/}"
    reward=0
  fi
done
echo $reward > /logs/verifier/reward.txt
