"""Run with:  python3 -m unittest"""

import unittest

from words import count_words


class CountWords(unittest.TestCase):
    def test_words_are_what_stands_between_spaces(self):
        self.assertEqual(count_words("one  two\nthree"), 3)

    def test_an_empty_text_has_none(self):
        self.assertEqual(count_words(""), 0)
