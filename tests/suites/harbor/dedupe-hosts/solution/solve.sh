#!/bin/bash
# Later lines win; hosts.new is read last.
set -eu -o pipefail
export LC_ALL=C
awk '
  { sub(/#.*/, ""); $0 = tolower($0) }
  { for (i = 2; i <= NF; i++) address[$i] = $1 }
  END { for (name in address) print address[name], name }
' hosts.old hosts.new | sort -k2,2 | sort -s -t. -k1,1n -k2,2n -k3,3n -k4,4n | awk '
  $1 != last { if (NR > 1) print line; line = $1; last = $1 }
  { line = line " " $2 }
  END { if (NR) print line }
' > hosts.merged
