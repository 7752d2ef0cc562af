#!/bin/bash
cat > total.sh <<'END'
#!/usr/bin/env bash
# Prints the sum of a month: total.sh MONTH
month=${1:-}
if ! [[ $month =~ ^[0-9]{4}-[0-9]{2}$ ]]; then
  echo "total.sh: expected a month such as 2024-02" >&2
  exit 2
fi
awk -v month="$month" '
  index($1, month "-") == 1 {
    amount = $2
    sign = amount ~ /^-/ ? -1 : 1
    gsub(/[-+.]/, "", amount)
    cents += sign * amount
  }
  END {
    printf "%s: %s%d.%02d\n", month, (cents < 0 ? "-" : ""), int((cents < 0 ? -cents : cents) / 100), (cents < 0 ? -cents : cents) % 100
  }
' ledger.txt
END
