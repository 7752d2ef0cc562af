#!/bin/bash
# Reward 1 if hosts.merged is right, else 0.
mkdir -p /logs/verifier
want="10.0.0.9 printer scanner
10.0.0.10 files
10.0.0.11 backup
10.0.0.12 wiki wiki.example.org
10.0.0.31 cache spare
10.0.1.2 build build-2
127.0.0.1 localhost loopback"
if [ "$(cat hosts.merged 2>&1)" = "$want" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  printf '%s\n' "$want" | diff - hosts.merged
  echo 0 > /logs/verifier/reward.txt
fi
