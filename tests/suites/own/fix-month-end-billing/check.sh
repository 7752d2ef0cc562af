#!/bin/bash
# Due dates at the ends of months and years.
fail() { echo "FAIL: $*" >&2; exit 1; }

got=$(python3 invoice_run.py subscriptions.json 5 2>&1)
want='S-100 2024-02-15 2024-03-15 2024-04-15 2024-05-15 2024-06-15
S-101 2024-02-29 2024-03-31 2024-04-30 2024-05-31 2024-06-30
S-102 2025-02-28 2026-02-28 2027-02-28 2028-02-29 2029-02-28
S-103 2024-02-29 2024-05-30 2024-08-30 2024-11-30 2025-02-28
S-104 2025-02-28 2026-08-31 2028-02-29 2029-08-31 2031-02-28'
[ "$got" = "$want" ] || fail "invoice_run.py prints
$got
instead of
$want"

python3 - <<'PY' || fail "next_dates"
from datetime import date
from billing import next_dates
assert next_dates(date(2023, 10, 31), 1, 4) == [date(2023, 11, 30), date(2023, 12, 31), date(2024, 1, 31), date(2024, 2, 29)]
assert next_dates(date(2020, 12, 31), 12, 2) == [date(2021, 12, 31), date(2022, 12, 31)]
assert next_dates(date(2024, 1, 1), 25, 2) == [date(2026, 2, 1), date(2028, 3, 1)]
assert next_dates(date(1999, 12, 30), 2, 1) == [date(2000, 2, 29)]
assert next_dates(date(2024, 5, 5), 1, 0) == []
PY
echo "all due dates are right"
