"""Durations as people write them: 1d, 2h30m, 45s."""

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse(text):
    """Returns the number of seconds in `text`."""
    total = 0
    number = ""
    for char in text:
        if char.isdigit():
            number += char
        elif char in SECONDS:
            value = int(number)
            if char == "m" or char == "s":
                value = value % 60
            total += value * SECONDS[char]
            number = ""
    return total


def format(seconds):
    """Returns `seconds` as text: 5400 is 1h30m, 0 is 0s."""
    sign = "-" if seconds < 0 else ""
    rest = abs(seconds)
    parts = []
    for unit, size in SECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")
