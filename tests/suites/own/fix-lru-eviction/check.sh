#!/bin/bash
# Plays the rules and a long random history against a simple model.
set -e
python3 -m unittest -q test_cache
python3 - <<'PY'
import random
from cache import LRU


def raises(call):
    try:
        call()
    except ValueError:
        return True
    return False


cache = LRU(2)
cache.put("a", 1)
cache.put("b", 2)
cache.get("a")
cache.put("c", 3)
assert cache.keys() == ["a", "c"], f"get must count as use: {cache.keys()}"
cache.put("a", 9)
assert cache.keys() == ["c", "a"] and cache.get("a") == 9, "put of a known key replaces it"
cache.peek("c"), "c" in cache
cache.put("d", 4)
assert cache.keys() == ["a", "d"], "peek and in are no use"

for value in (None, 0, "", []):
    cache = LRU(1)
    cache.put("k", value)
    assert cache.get("k", "other") == value, f"{value!r} is a value"
    assert cache.stats() == {"hits": 1, "misses": 0, "size": 1}, cache.stats()

for capacity in (0, -1):
    assert raises(lambda: LRU(capacity)), "capacity below 1"
    cache = LRU(3)
    assert raises(lambda: cache.resize(capacity)), "resize below 1"
    assert cache.capacity == 3

rng = random.Random(5)
cache, model, capacity, hits, misses = LRU(4), [], 4, 0, 0
for step in range(4000):
    key, roll = rng.randrange(9), rng.random()
    known = dict(model)
    if roll < 0.4:
        got = cache.get(key, "none")
        assert got == known.get(key, "none"), f"step {step}: get({key}) is {got!r}"
        if key in known:
            hits += 1
            model = [e for e in model if e[0] != key] + [(key, known[key])]
        else:
            misses += 1
    elif roll < 0.9:
        value = rng.choice([None, step])
        cache.put(key, value)
        model = ([e for e in model if e[0] != key] + [(key, value)])[-capacity:]
    elif roll < 0.97:
        assert (key in cache) == (key in known) and cache.peek(key, "none") == known.get(key, "none")
    else:
        capacity = rng.randrange(1, 8)
        cache.resize(capacity)
        model = model[-capacity:]
    assert cache.keys() == [e[0] for e in model], f"step {step}: {cache.keys()} is not {[e[0] for e in model]}"
    assert len(cache) == len(model)
    assert cache.stats() == {"hits": hits, "misses": misses, "size": len(model)}, cache.stats()
print("the cache forgets the right entries")
PY
