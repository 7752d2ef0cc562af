#!/bin/bash
# Two carts, totals with discounts, and a round trip through dump and restore.
python3 - <<'PY'
import copy
from shop import Cart, restore

a, b = Cart(), Cart()
a.add("pen", 100)
assert b.lines == [], f"carts share lines: {b.lines}"
assert a.lines == [{"article": "pen", "price": 100, "quantity": 1}], a.lines

a.add("ink", 250, 2)
a.add("pen", 100, 3)
assert [(l["article"], l["quantity"]) for l in a.lines] == [("pen", 4), ("ink", 2)], a.lines
assert a.total() == 900, a.total()

a.remove("pen")
assert [l["article"] for l in a.lines] == ["ink"], a.lines
try:
    a.remove("pen")
except KeyError:
    pass
else:
    raise AssertionError("remove of an article that is not there must raise KeyError")
c = Cart([{"article": "x", "price": 1, "quantity": 1}, {"article": "x", "price": 1, "quantity": 2}, {"article": "y", "price": 1, "quantity": 1}])
c.remove("x")
assert [l["article"] for l in c.lines] == ["y"], f"remove leaves lines behind: {c.lines}"

def total(discount, *lines):
    cart = Cart(discount=discount)
    for i, (price, quantity) in enumerate(lines):
        cart.add(f"a{i}", price, quantity)
    value = cart.total()
    assert type(value) is int, f"total is {value!r}"
    return value

assert total(15, (10, 1)) == 9, "8.5 cents are 9"
assert total(50, (1, 1), (1, 1)) == 1, "the discount is taken from the sum"
assert total(50, (5, 1)) == 3, "2.5 cents are 3, not 2"
assert total(50, (1, 1)) == 1
assert total(0, (1999, 3)) == 5997
assert total(100, (1999, 3)) == 0
assert total(10, (35, 1)) == 32, "31.5 cents are 32"
assert total(29, (100, 1)) == 71
assert total(10) == 0

data = {"lines": [{"article": "pen", "price": 100, "quantity": 1}], "discount": 10}
before = copy.deepcopy(data)
cart = restore(data)
assert cart.total() == 90
cart.add("pen", 100)
cart.add("ink", 5)
assert data == before, f"restore shares its data: {data}"
again = restore(cart.dump())
assert again.lines == cart.lines and again.discount == 10
again.remove("ink")
assert len(cart.lines) == 2
print("carts are separate and totals are right")
PY
