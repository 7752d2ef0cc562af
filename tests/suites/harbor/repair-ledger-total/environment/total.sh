#!/usr/bin/env bash
# Prints the sum of a month: total.sh MONTH
month=$1
sum=0
grep "$month" ledger.txt | while read -r date amount text; do
  cents=${amount%.*}
  sum=$((sum + cents))
  echo "$month: $sum" > /tmp/total
done
cat /tmp/total
