#!/bin/bash
# Old functions, separate meters, and no state in the module.
set -e
python3 -m unittest -q test_meter
out=$(printf '1 a\n2 b\n3 b\n40 c\n41 a\n42 c\n' | python3 report.py)
[ "$out" = "c 2
a 1" ] || { echo "report.py prints: $out" >&2; exit 1; }
python3 - <<'PY'
import ast
import meter

one, two = meter.Meter(), meter.Meter(window=10)
assert (one.window, two.window) == (60, 10)
for now in range(20):
    one.hit("a", now)
    two.hit("a", now)
two.hit("b", 19)
assert one.rate("a", 19) == 20 and two.rate("a", 19) == 10
assert one.rate("b", 19) == 0 and one.top(19) == [("a", 20)]
assert two.top(19) == [("a", 10), ("b", 1)] and two.top(19, 1) == [("a", 10)] and two.top(19, count=0) == []
two.window = 5
assert two.rate("a", 19) == 5
two.window = 10
assert two.rate("a", 19) == 5, "rate forgets what is too old"
one.reset()
assert one.top(19) == [] and two.rate("a", 19) == 5, "reset of one meter must not empty another"
one.window = 7
one.reset()
assert one.window == 7, "reset keeps the window"

assert isinstance(meter.DEFAULT, meter.Meter)
meter.reset()
meter.hit("x", 1)
assert meter.DEFAULT.rate("x", 1) == 1 and two.rate("x", 1) == 0
meter.set_window(3)
assert meter.DEFAULT.window == 3 and one.window == 7
for bad in (0, -1):
    try:
        meter.set_window(bad)
    except ValueError:
        pass
    else:
        raise AssertionError("set_window must refuse %d" % bad)
assert meter.DEFAULT.window == 3

tree = ast.parse(open("meter.py").read())
assert not any(isinstance(node, ast.Global) for node in ast.walk(tree)), "there is a global statement"
names = [name for name, value in vars(meter).items() if isinstance(value, (dict, list, set)) and not name.startswith("__")]
assert not names, f"module variables with state: {names}"
for node in tree.body:
    if isinstance(node, ast.ClassDef) and node.name == "Meter":
        shared = [s for s in node.body if isinstance(s, ast.Assign) and isinstance(s.value, (ast.Dict, ast.List))]
        assert not shared, "the state is shared by all meters"
print("meters are separate")
PY
