"""Prints the due dates of all subscriptions: invoice_run.py SUBSCRIPTIONS.json COUNT"""

import json
import sys
from datetime import date

from billing import next_dates


def main(path, count):
    with open(path) as file:
        subscriptions = json.load(file)
    for entry in subscriptions:
        start = date.fromisoformat(entry["start"])
        dates = next_dates(start, entry["every_months"], count)
        print(entry["id"], *(day.isoformat() for day in dates))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
