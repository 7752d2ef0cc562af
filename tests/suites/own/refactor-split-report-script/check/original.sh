#!/usr/bin/env bash
set -eu
export LC_ALL=C

file=$1

title="Tickets of $(basename "$file" .csv)"
echo "$title"
echo "$title" | sed 's/./=/g'
echo

open=$(awk -F, '$3 == "open" { n++ } END { print n + 0 }' "$file")
echo "open: $open"
mean=$(awk -F, '$3 == "closed" { n++; days += $4 } END { if (n) printf "%.1f", days / n; else printf "-" }' "$file")
echo "mean days to close: $mean"
echo

title="Open by owner"
echo "$title"
echo "$title" | sed 's/./=/g'
echo

awk -F, '$3 == "open" { n[$2]++ } END { for (owner in n) print owner, n[owner] }' "$file" |
  sort -k2,2nr -k1,1 |
  while read -r owner count; do
    stars=
    i=0
    while [ "$i" -lt "$count" ] && [ "$i" -lt 20 ]; do
      stars="$stars#"
      i=$((i + 1))
    done
    if [ "$count" -gt 20 ]; then
      stars="$stars+"
    fi
    printf '%-10s %3d %s\n' "$owner" "$count" "$stars"
  done
