import unittest

import meter


class Functions(unittest.TestCase):
    def setUp(self):
        meter.reset()
        meter.set_window(60)

    def test_rate(self):
        for now in (0, 30, 59, 61):
            meter.hit("login", now)
        self.assertEqual(meter.rate("login", 61), 3)
        self.assertEqual(meter.rate("logout", 61), 0)

    def test_top(self):
        for name in ["b", "a", "c", "c", "d"]:
            meter.hit(name, 5)
        self.assertEqual(meter.top(6), [("c", 2), ("a", 1), ("b", 1)])


if __name__ == "__main__":
    unittest.main()
