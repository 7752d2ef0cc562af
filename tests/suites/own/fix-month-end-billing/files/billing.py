"""Due dates of subscriptions."""

from datetime import date


def add_months(day, months):
    """Returns `day` plus `months` months."""
    month = day.month + months
    year = day.year
    if month > 12:
        month -= 12
        year += 1
    return date(year, month, day.day)


def next_dates(start, months, count):
    """Returns the next `count` due dates after `start`, every `months` months."""
    dates = []
    day = start
    for _ in range(count):
        day = add_months(day, months)
        dates.append(day)
    return dates
