import unittest

from cache import LRU


class Cache(unittest.TestCase):
    def test_put_and_get(self):
        cache = LRU(2)
        cache.put("a", 1)
        self.assertEqual(cache.get("a"), 1)
        self.assertEqual(cache.get("b", 7), 7)
        self.assertEqual(cache.stats(), {"hits": 1, "misses": 1, "size": 1})

    def test_oldest_goes(self):
        cache = LRU(2)
        for key in "abc":
            cache.put(key, key)
        self.assertEqual(cache.keys(), ["b", "c"])


if __name__ == "__main__":
    unittest.main()
