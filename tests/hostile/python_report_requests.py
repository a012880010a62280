"""What a Python client (KV_TEST_CLIENT) sends for queries of reports, and which arguments it refuses."""

import datetime
import math
import zoneinfo

import kvstore
from kvstore import Expression, Filter, Metric, Point, Top
from kvstore.v1 import reports_pb2
from python_faults import fails
from python_reports import END, point, run

UTC = datetime.timezone.utc


def test_times(reports, server):
    """Dates are midnight of the query's zone; everything else says where it is."""
    server.answers = [END]
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    january = 1_356_998_400_000
    for given, timezone, ms in (
        (january, "UTC", january),
        ("2013-01-01", "UTC", january),
        ("2013-01-01", "Europe/Berlin", january - 3_600_000),
        (datetime.date(2013, 1, 1), "America/New_York", january + 5 * 3_600_000),
        ("2013-01-01T00:00:00Z", "Europe/Berlin", january),
        ("2013-01-01T05:00:00.2509+05:00", "UTC", january + 250),
        (datetime.datetime(2013, 1, 1, tzinfo=UTC), "Europe/Berlin", january),
        (datetime.datetime(2013, 1, 1, 1, 0, 0, 999, tzinfo=berlin), "UTC", january),
        ("1970-01-01", "UTC", 0),
        (253_402_300_800_000, "UTC", 253_402_300_800_000),
    ):
        server.seen = []
        reports.query("r", ["clicks"], 0, given, timezone=timezone)
        assert server.seen[0].to == ms and server.seen[0].time_zone == timezone, (given, server.seen)
    for wrong, text in (
        ("1969-12-31", "is not from 1970 to 9999"),
        (-1, "is not from 1970"),
        (253_402_300_800_001, "is not from 1970"),
        (datetime.datetime(2013, 1, 1), "a datetime without a time zone"),
        (datetime.datetime(1, 1, 1, tzinfo=UTC), "is not from 1970"),
        ("2013-02-30", "is no time"),
        ("2013-01-01T00:00:00", "is no time"),
        ("2013-01-01T00:00:61Z", "is no time"),
        ("٢٠١٣-٠١-٠١", "is no time"),
        (True, "is no time"),
        (1.5, "is no time"),
        (None, "is no time"),
    ):
        fails(kvstore.InvalidArgument, text, lambda: reports.query("r", ["clicks"], 0, wrong))
    mars = lambda: reports.query("r", ["clicks"], "2013-01-01", 5, timezone="Mars/Phobos")
    fails(kvstore.InvalidArgument, "no zone 'Mars/Phobos'", mars)
    # The last point that there can be.
    server.seen = []
    reports.write("r", [point(1, 253_402_300_799_999)])
    fails(kvstore.InvalidArgument, "points[0].time", lambda: reports.write("r", [point(1, 253_402_300_800_000)]))


def test_query_is_sent_whole(reports, server):
    server.answers, server.seen = [END], []
    reports.query(
        "flights",
        ["departures", Expression("rate", "late / departures")],
        0,
        1000,
        step="2w",
        filters=[Filter({"carrier": ["UA", "AA"], "origin": "*"}, "some"), Filter({})],
        group_by=["origin"],
        function="p99.9",
        top=Top(5, "max"),
        fill="previous",
        compare_to="+1mo",
        partial=True,
        explain=True,
    )
    sent = server.seen[0]
    assert (sent.dataset, sent.report) == ("reports", "flights")
    assert [(one.name, one.expression) for one in sent.metrics] == [("departures", ""), ("rate", "late / departures")]
    assert (sent.step.unit, sent.step.count) == (reports_pb2.Step.UNIT_WEEKS, 2)
    assert (sent.compare.unit, sent.compare.count, sent.compare_later) == (reports_pb2.Step.UNIT_MONTHS, 1, True)
    assert [one.name for one in sent.filters] == ["some", ""] and not sent.filters[1].where
    assert [(one.key, list(one.values), one.any) for one in sent.filters[0].where] == [
        ("carrier", ["UA", "AA"], False),
        ("origin", [], True),
    ]
    assert sent.function.kind == reports_pb2.Function.KIND_PERCENTILE and sent.function.percentile == 99.9
    assert sent.top.n == 5 and sent.top.by.kind == reports_pb2.Function.KIND_MAX
    assert sent.fill == reports_pb2.FILL_PREVIOUS and list(sent.group_by) == ["origin"]
    assert sent.partial and sent.explain
    for step, unit, count in (
        ("500ms", 1, 500),
        ("15m", 1, 900_000),
        (datetime.timedelta(days=1), 1, 86_400_000),
        (60_000, 1, 60_000),
        ("1d", 2, 1),
        ("1y", 4, 12),
        ("100y", 4, 1200),
    ):
        server.seen = []
        reports.query("r", ["c"], 0, 1, step=step, compare_to="-7d")
        assert (server.seen[0].step.unit, server.seen[0].step.count) == (unit, count), step
        assert not server.seen[0].compare_later


def test_mistakes(reports, server):
    query = lambda metrics=("c",), **more: reports.query("r", metrics, 0, 1, **more)
    where = lambda **where: query(filters=[Filter({}), Filter(where)])
    create = lambda **more: reports.create("r", **more)
    server.seen = []
    for text, call in (
        ("metrics: is of type str; it is a list", lambda: query("clicks")),
        ("metrics: has 0 entries", lambda: query([])),
        ("step: is no stretch of time", lambda: query(step="1 d")),
        ("step: is no stretch of time", lambda: query(step="101y")),
        ("step: is no stretch of time", lambda: query(step="0d")),
        ("step: is no stretch of time", lambda: query(step=True)),
        ("step: has parts of a millisecond", lambda: query(step=datetime.timedelta(microseconds=1))),
        ("function: is none of sum, count", lambda: query(function="median")),
        ("function: is none of", lambda: query(function="p101")),
        ("fill: 'linear' is none of none, zero, previous", lambda: query(fill="linear")),
        ("top: is of type int", lambda: query(top=5)),
        ("top.n: 0 is out of range", lambda: query(top=Top(0))),
        ("top.by: is none of", lambda: query(top=Top(1, "best"))),
        ("compare_to: must be a sign", lambda: query(compare_to="7d")),
        ("group_by: is of type str", lambda: query(group_by="country")),
        ("filters[0]: is no kvstore.Filter", lambda: query(filters=[{"country": ["US"]}])),
        ('filters[1].where: is of type str; it is a list of values, or "*"', lambda: where(country="US")),
        ("metrics[1].kind: 'set' is none of value, distinct, distribution", lambda: create(metrics=["a", Metric("b", "set")])),
        ("period: must be a whole number of seconds", lambda: reports.create("r", period="1500ms")),
        ("resolution: must have a fixed length", lambda: reports.create("r", resolution="1mo")),
        ("salts: 65 is out of range 1..64", lambda: reports.create("r", salts=65)),
        ("segment_keys: is of type str", lambda: reports.create("r", "country")),
        ("rollups: is of type tuple", lambda: reports.alter("r", rollups=[(["a"], "1d")])),
        ("points: is of type dict", lambda: reports.write("r", {})),
        ("points[0]: is no kvstore.Point", lambda: reports.write("r", [{}])),
        ("points[1].value: is of type str; it is a number", lambda: reports.write("r", [point(1), point("3")])),
        ("points[0].value: is of type bool", lambda: reports.write("r", [point(True)])),
        ("points[0].value: is None", lambda: reports.write("r", [point(None)])),
        ("points[0].value: is nan", lambda: reports.write("r", [point(math.nan)])),
        ("points[0].value: is inf", lambda: reports.write("r", [point([1.0, math.inf])])),
        ("points[0].value: is of type int; it is bytes or a str", lambda: reports.write("r", [point(["a", 1])])),
        ("points[0].value: is beyond the integers of 64 bits", lambda: reports.write("r", [point(1 << 63)])),
        ("points[0].segments: is of type int", lambda: reports.write("r", [point(1, country=5)])),
        ("points[0].segments: is of type list", lambda: reports.write("r", [Point("m", 0, ["US"], 1)])),
        ("points[0].metric: is of type int", lambda: reports.write("r", [point(1, metric=5)])),
        ("timeout_s: 0 is no time", lambda: reports.write("r", [point(1)], timeout_s=0)),
    ):
        error = fails(kvstore.InvalidArgument, text, call)
        assert not error.in_doubt, error
    assert server.seen == [], "nothing of it was sent"


if __name__ == "__main__":
    run(globals())
