"""Counts events in a sliding window. Times are in seconds."""

_hits = {}
_window = 60


def set_window(seconds):
    """Sets the length of the window."""
    global _window
    if seconds <= 0:
        raise ValueError("the window must be positive")
    _window = seconds


def hit(name, now):
    """Counts an event."""
    _hits.setdefault(name, []).append(now)


def rate(name, now):
    """Returns how many events `name` had in the window that ends at `now`, and forgets older ones."""
    times = [time for time in _hits.get(name, []) if now - time < _window]
    if times:
        _hits[name] = times
    else:
        _hits.pop(name, None)
    return len(times)


def top(now, count=3):
    """Returns the names with the most events: [(name, events)], ties by name."""
    rates = [(name, rate(name, now)) for name in sorted(_hits)]
    rates = [entry for entry in rates if entry[1]]
    rates.sort(key=lambda entry: -entry[1])
    return rates[:count]


def reset():
    """Forgets all events; the window stays."""
    global _hits
    _hits = {}
