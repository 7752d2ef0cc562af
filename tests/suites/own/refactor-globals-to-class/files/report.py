"""Prints the busiest names of a log of `TIME NAME` lines: report.py < LOG"""

import sys

import meter


def main(lines):
    meter.set_window(30)
    last = 0
    for line in lines:
        time, name = line.split()
        last = int(time)
        meter.hit(name, last)
    for name, events in meter.top(last):
        print(name, events)


if __name__ == "__main__":
    main(sys.stdin)
