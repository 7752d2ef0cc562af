#!/bin/bash
# Reward 1 if all sums and errors are right, else 0.
mkdir -p /logs/verifier
reward=1
wrong() { echo "wrong: $*"; reward=0; }
is() { [ "$(bash total.sh "$1" 2>&1)" = "$1: $2" ] || wrong "$1: $(bash total.sh "$1" 2>&1), wanted $2"; }
is 2024-01 87.50
is 2024-02 41.35
is 2024-10 -0.13
is 2024-12 1234.09
is 2023-05 0.00
for month in 2024-1 2024 x "" "2024-01-03"; do
  out=$(bash total.sh "$month" 2> /tmp/err)
  [ $? -eq 2 ] && [ -z "$out" ] && [ -s /tmp/err ] || wrong "month '$month' must be refused"
done
for i in 1 2 3 4 5 6 7 8 9 10; do echo "2025-08-$i +0.10 a"; echo "2025-08-$i -0.08 b"; done >> ledger.txt
is 2025-08 0.20
echo $reward > /logs/verifier/reward.txt
