#!/usr/bin/env bash
# Prints the mean of each sensor: averages.sh FILE
awk '
  { sum[$2] += $3; count[$2]++ }
  END {
    for (sensor in sum)
      printf "%s %.2f %d\n", sensor, sum[sensor] / count[sensor], count[sensor]
  }
' "$1"
