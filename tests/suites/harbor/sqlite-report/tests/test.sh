#!/bin/bash
# Reward 1 if out.txt names the books that are out, else 0.
mkdir -p /logs/verifier
if [ "$(cat out.txt 2>&1)" = "A Field Guide to Moss
Tides" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
