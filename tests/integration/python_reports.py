"""Every call on reports of a Python client (KV_TEST_CLIENT) against a real server.

python_reports.py ADDRESS
"""

import datetime
import sys

import kvstore
from kvstore import Expression, Filter, Metric, Point, SegmentKey, Top
from python_calls import raises
from python_clients import connect

JANUARY = 1_356_998_400_000
HOUR = 3_600_000
DAY = 24 * HOUR


def created(store, name):
    """Returns the calls on reports, of which there is one with that name."""
    reports = store.reports()
    reports.create(
        name,
        ["carrier", SegmentKey("origin", "?")],
        ["departures", "late", Metric("delay", "distribution"), Metric("planes", "distinct")],
        resolution="1h",
        period="30d",
        salts=4,
    )
    return reports


def departures(time, value, carrier="UA", **more):
    return Point("departures", time, {"carrier": carrier, **more}, value)


def points_of(result, *path):
    """Returns the points of the only series, or of the one with these values of its segments."""
    found = [one for one in result.series if tuple(one.segments.values()) == path]
    assert len(found) == 1, result.series
    return found[0].points


def january(reports, name, metrics=("departures",), **more):
    return reports.query(name, list(metrics), "2013-01-01", "2013-02-01", **more)


def test_a_report(store):
    reports = created(store, "flights")
    assert reports.list() == ["flights"]
    raises(kvstore.AlreadyExists, "flights", lambda: reports.create("flights"))
    found = reports.info("flights", ["delay", "no such"])
    assert found.metrics == [Metric("delay", "distribution")] and found.segment_values == {}
    assert (found.resolution_ms, found.period_s, found.salts, found.retention_ms) == (HOUR, 30 * 86_400, 4, 0)
    assert found.segment_keys == [SegmentKey("carrier"), SegmentKey("origin", "?")] and found.id > 0
    reports.alter("flights", add_segment_key=SegmentKey("dest", "none"), add_metrics=["seats"], retention="36500d")
    reports.write("flights", [departures(JANUARY, 1, dest="SFO")])
    found = reports.describe("flights")
    assert [one.name for one in found.segment_keys] == ["carrier", "origin", "dest"]
    assert {one.name for one in found.metrics} == {"departures", "late", "delay", "planes", "seats"}
    assert found.segment_values == {"carrier": ["UA"], "origin": ["?"], "dest": ["none", "SFO"]}, found
    assert reports.describe("flights", ["late"]).metrics == [Metric("late")]
    page = reports.list_metrics("flights", "de", limit=1)
    assert page.metrics == [Metric("delay", "distribution")] and page.more
    page = reports.list_metrics("flights", "de", after="delay")
    assert page.metrics == [Metric("departures")] and not page.more
    assert len(reports.list_metrics("flights").metrics) == 5
    raises(kvstore.InvalidArgument, "limit", lambda: reports.list_metrics("flights", limit=5001))
    raises(kvstore.NotFound, "'none'", lambda: reports.list_metrics("none"))
    raises(kvstore.NotFound, "'none'", lambda: reports.info("none"))
    # A report of another dataset is another one.
    others = store.reports("other_reports")
    assert others.list() == []
    others.create("flights")
    assert others.list() == ["flights"] and others.describe("flights").segment_keys == []
    others.drop("flights")
    assert others.list() == [] and reports.list() == ["flights"]
    reports.drop("flights")
    raises(kvstore.NotFound, "'flights'", lambda: reports.drop("flights"))


def test_points_and_queries(store):
    reports = created(store, "points")
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    written = reports.write(
        "points",
        [
            departures("2013-01-01T05:00:00Z", 3, origin="EWR"),
            departures(datetime.datetime(2013, 1, 1, 0, tzinfo=zone), 4, "AA"),
            departures(datetime.date(2013, 1, 2), (1 << 62) + 1, origin="EWR"),
            Point("late", JANUARY + DAY, {"carrier": "UA"}, 1.5),
            Point("delay", JANUARY, {"carrier": "UA"}, [4, -2, 11]),
            Point("planes", JANUARY, {"carrier": "UA"}, {"N14228", b"N24211"}),
            Point("planes", JANUARY + HOUR, {"carrier": "UA"}, ["N14228"]),
        ],
    )
    assert written == 7
    daily = january(reports, "points", step="1d")
    assert points_of(daily) == [(JANUARY, 7), (JANUARY + DAY, (1 << 62) + 1)], daily
    assert all(isinstance(value, int) for _, value in points_of(daily)), "integers are exact"
    assert daily.cost.chunks > 0 and not daily.partial and daily.missing == [] and daily.parts == []
    by_origin = january(reports, "points", group_by=["origin"], function="count")
    assert points_of(by_origin, "?") == [(JANUARY, 1)] and points_of(by_origin, "EWR") == [(JANUARY, 2)]
    assert points_of(january(reports, "points", ["delay"], function="p100")) == [(JANUARY, 11.0)]
    assert points_of(january(reports, "points", ["planes"], function="distinct")) == [(JANUARY, 2)]
    found = january(
        reports,
        "points",
        [Expression("double", "2 * departures")],
        step="1d",
        filters=[Filter({"carrier": ["AA"], "origin": "*"}, "american"), Filter({"carrier": []}, "nobody")],
        fill="zero",
        explain=True,
    )
    assert [(one.metric, one.filter) for one in found.series] == [("double", "american"), ("double", "nobody")]
    assert found.series[0].points[:2] == [(JANUARY, 8), (JANUARY + DAY, 0)] and len(found.series[0].points) == 31
    top = january(reports, "points", group_by=["carrier"], top=Top(1, "count"))
    assert [one.segments for one in top.series] == [{"carrier": "UA"}]
    compared = reports.query("points", ["departures"], "2013-01-02", "2013-01-03", step="1d", compare_to="-1d")
    assert compared.series[0].compared == [(JANUARY, 7)] and points_of(compared)[0][1] == (1 << 62) + 1
    # Days of the query's zone.
    local = reports.query(
        "points", ["departures"], "2013-01-01", "2013-01-02", step="1d", timezone="America/New_York"
    )
    assert points_of(local) == [(JANUARY + 5 * HOUR, 7 + (1 << 62) + 1)]
    # The server refuses these calls.
    write = lambda *point: reports.write("points", [Point(*point)])
    for kind, text, call in (
        (kvstore.NotFound, "no metric 'none'", lambda: january(reports, "points", ["none"])),
        (kvstore.InvalidArgument, "no segment key 'x'", lambda: january(reports, "points", group_by=["x"])),
        (kvstore.InvalidArgument, "timezone", lambda: reports.query("points", ["late"], 0, 1, timezone="Mars/Phobos")),
        (kvstore.ResourceExhausted, "100000 steps", lambda: january(reports, "points", step="1ms")),
        (kvstore.InvalidArgument, "distinct", lambda: january(reports, "points", ["planes"])),
        (kvstore.InvalidArgument, "resolution", lambda: reports.write("points", [departures(JANUARY + 1, 1)])),
        (kvstore.InvalidArgument, "carrier", lambda: write("late", JANUARY, {"origin": "EWR"}, 1)),
        (kvstore.NotFound, "none", lambda: write("none", JANUARY, {"carrier": "UA"}, 1)),
        (kvstore.InvalidArgument, "kind", lambda: write("planes", JANUARY, {"carrier": "UA"}, 1)),
        (kvstore.NotFound, "none", lambda: reports.write("none", [departures(JANUARY, 1)])),
    ):
        assert not raises(kind, text, call).in_doubt


def test_batches(store):
    """A batch counts once; large writes are many batches."""
    reports = created(store, "batches")
    add = lambda name: reports.write("batches", [departures(JANUARY, 5)], batch=name, add=True)
    assert add("b1") == add("b1") == add("b2") == 1
    assert points_of(january(reports, "batches")) == [(JANUARY, 10)]
    assert reports.compact("batches").chunks_written == 1
    add("b1")
    assert points_of(january(reports, "batches")) == [(JANUARY, 10)]

    def hours():
        return (departures(JANUARY + at % 700 * HOUR, 1, f"c{at // 700}") for at in range(120_000))

    for _ in range(2):
        assert reports.write("batches", hours(), batch="large", add=True) == 120_000
    assert sum(value for _, value in points_of(january(reports, "batches", step="1h"))) == 120_010

    rows = reports.delete("batches", ["departures"], "2013-01-01", "2013-01-02")
    assert rows > 0
    assert points_of(january(reports, "batches", function="min")) == [(JANUARY, 1)]
    assert sum(value for _, value in points_of(january(reports, "batches"))) < 120_000
    raises(kvstore.NotFound, "none", lambda: reports.delete("batches", ["none"], 0, 1))
    # Deadlines hold for queries and for what may take long.
    raises(kvstore.DeadlineExceeded, "", lambda: january(reports, "batches", timeout_s=0.000001))
    raises(kvstore.DeadlineExceeded, "", lambda: reports.compact("batches", timeout_s=0.000001))
    assert reports.make_rollups("batches").rows_written == 0
    reports.drop("batches")


def test_pandas(store):
    try:
        import pandas
    except ImportError:
        return
    reports = created(store, "frames")
    for carrier in ("UA", "AA"):
        reports.write("frames", [departures(JANUARY + at * DAY, at, carrier) for at in range(3)])
    frame = january(reports, "frames", step="1d", group_by=["carrier"]).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.shape == (3, 2)
    assert frame["departures", "", "UA"].tolist() == [0, 1, 2]


def main(address):
    with connect(address) as store:
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(store)


if __name__ == "__main__":
    main(sys.argv[1])
