#!/usr/bin/env bash
# Prints one page of a text file: pager.sh FILE PAGE [SIZE]
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: pager.sh FILE PAGE [SIZE]" >&2
  exit 64
fi

file=$1
page=$2
size=${3:-10}

if [ ! -r "$file" ]; then
  echo "pager.sh: cannot read $file" >&2
  exit 66
fi

total=$(wc -l < "$file")
pages=$((total / size + 1))

if [ "$page" -lt 1 ] || [ "$page" -gt "$pages" ]; then
  echo "pager.sh: no such page: $page (there are $pages)" >&2
  exit 2
fi

first=$(((page - 1) * size + 1))
last=$((first + size))

sed -n "${first},${last}p" "$file"
echo "-- page $page of $pages --"
