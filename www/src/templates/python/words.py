"""Counts the words of files:  python3 words.py FILE…"""

import sys


def count_words(text):
    """How many words a text has."""
    return len(text.split())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            print(count_words(file.read()), name, sep="\t")
