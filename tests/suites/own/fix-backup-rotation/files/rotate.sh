#!/usr/bin/env bash
# Deletes old backups: rotate.sh DIR KEEP
dir=$1
keep=$2

cd "$dir" || exit 1
for kind in $(ls *.tar | cut -d- -f1 | sort -u); do
  for old in $(ls $kind*.tar | sort -r | tail -n +$((keep + 1))); do
    rm "$old"
    echo "removed $old"
  done
done
