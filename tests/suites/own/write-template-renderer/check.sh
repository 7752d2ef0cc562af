#!/bin/bash
# Renders many small templates.
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f render.py ] || fail "render.py is missing"
out=$(python3 render.py samples/order.tmpl samples/order.json) || fail "the sample: exit code $?"
[ "$out" = "Dear Ann &amp; Co,


- 2 x Lamp &lt;small&gt; (blue)

- 1 x Bulb

Please pay €31.5." ] || fail "the sample prints
$out"
python3 "$here/cases.py"
