"""A cache that forgets what was not used for the longest time."""


class LRU:
    def __init__(self, capacity):
        self.capacity = capacity
        self.order = []
        self.values = {}
        self.hits = 0
        self.misses = 0

    def get(self, key, default=None):
        value = self.values.get(key)
        if not value:
            self.misses += 1
            return default
        self.hits += 1
        return value

    def peek(self, key, default=None):
        return self.values.get(key, default)

    def put(self, key, value):
        if len(self.order) == self.capacity:
            oldest = self.order.pop(0)
            del self.values[oldest]
        self.order.append(key)
        self.values[key] = value

    def resize(self, capacity):
        self.capacity = capacity

    def keys(self):
        return list(self.order)

    def stats(self):
        return {"hits": self.hits, "misses": self.misses, "size": len(self.values)}

    def __contains__(self, key):
        return key in self.values

    def __len__(self):
        return len(self.values)
