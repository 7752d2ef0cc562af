#!/bin/bash
while IFS=$'\t' read -r old new; do
  mkdir -p "archive/$(dirname "$new")"
  mv "inbox/$old" "archive/$new"
done < plan.tsv
cat > undo.sh <<'END'
#!/usr/bin/env bash
# Puts the photographs of plan.tsv back into inbox/.
cd "$(dirname "$0")" || exit 1
while IFS=$'\t' read -r old new; do
  if [ -e "inbox/$old" ]; then
    echo "undo.sh: inbox/$old is there already" >&2
    exit 1
  fi
done < plan.tsv
while IFS=$'\t' read -r old new; do
  mv "archive/$new" "inbox/$old"
done < plan.tsv
rm -r archive
END
