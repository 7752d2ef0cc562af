#!/bin/bash
export LC_ALL=C
ls inbox | grep -iE '\.(jpg|jpeg|png)$' | sort | awk -F '\t' '
  FNR == NR { date[$1] = $2; next }
  !($1 in date) { print $1 "\tundated/" $1; next }
  {
    extension = tolower($1)
    sub(/.*\./, "", extension)
    if (extension == "jpeg") extension = "jpg"
    day = date[$1]
    printf "%s\t%s/%s_%02d.%s\n", $1, substr(day, 1, 4), day, ++count[day], extension
  }
' dates.tsv - | sort -t "$(printf '\t')" -k2,2 > plan.tsv
