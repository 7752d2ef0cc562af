import unittest

import durations


class Parse(unittest.TestCase):
    def test_parts(self):
        self.assertEqual(durations.parse("1h30m"), 5400)
        self.assertEqual(durations.parse("1d"), 86400)

    def test_number_alone(self):
        self.assertEqual(durations.parse("45"), 45)


class Format(unittest.TestCase):
    def test_units(self):
        self.assertEqual(durations.format(5400), "1h30m")
        self.assertEqual(durations.format(-61), "-1m1s")
        self.assertEqual(durations.format(0), "0s")


if __name__ == "__main__":
    unittest.main()
