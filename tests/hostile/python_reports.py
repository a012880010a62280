"""What a Python client (KV_TEST_CLIENT) writes to reports, what it takes of their answers, and what it does when calls
fail."""

import contextlib
import datetime
import itertools
import math
from concurrent import futures

import grpc
import kvstore
from kvstore import Metric, Point, Rollup, SegmentKey, messages
from kvstore.v1 import kvstore_pb2_grpc, reports_pb2, reports_pb2_grpc
from python_clients import connect
from python_faults import DEAD_MASTER, UNAVAILABLE, fails

REFUSED = (grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")
LOST = (UNAVAILABLE, None)
END = reports_pb2.QueryReportResponse(end=reports_pb2.QueryReportResponse.End())


class Answering(kvstore_pb2_grpc.KVStoreServicer, reports_pb2_grpc.ReportsServicer):
    """Answers with what `answers` has; notes requests in `seen`. `plan` has the ends of the next messages: (code,
    outcome or None), an Error that answers a batch, or None where they succeed."""

    def __init__(self):
        self.answers = []
        self.plan = []
        self.seen = []
        self.calls = 0

    def fail(self, context):
        step = self.plan.pop(0) if self.plan else None
        if not isinstance(step, tuple):
            return step
        code, outcome = step
        if outcome is not None:
            context.set_trailing_metadata((("kvstore-outcome", outcome),))
        context.abort(code, "as planned")

    def meet(self, request, context):
        self.seen.append(request)
        self.fail(context)

    def stream(self, request, context):
        self.meet(request, context)
        for answer in self.answers:
            yield answer
            self.fail(context)

    def one(self, request, context):
        self.meet(request, context)
        return self.answers[0]

    def GetServer(self, request, context):
        return messages.GetServerResponse(instance=b"one", clock_us=10_000_000_000)

    def WritePoints(self, requests, context):
        self.calls += 1
        for request in requests:
            self.seen.append(request)
            error = self.fail(context)
            points = len(request.values.times) + len(request.distincts.times) + len(request.distributions.times)
            yield reports_pb2.WritePointsResponse(error=error) if error else reports_pb2.WritePointsResponse(
                written=points + (request.report == "miscounted")
            )
            if request.report == "short":
                return

    CreateReport = AlterReport = DropReport = DeletePoints = one
    ListReports = GetReport = QueryReport = CompactReport = MakeRollups = stream


def point(value, at=0, metric="clicks", **segments):
    return Point(metric, at, segments, value)


def test_points_are_columns(reports, server):
    server.seen = []
    written = reports.write(
        "flights",
        [
            Point("departures", 0, {"carrier": "UA"}, 3),
            Point("departures", 1, {"carrier": "UA"}, 2.5),
            Point("departures", 0, {"carrier": "AA", "origin": "JFK"}, -(1 << 63)),
            ("delay", 0, {}, [4, -2.5]),
            Point("planes", 0, {"origin": "JFK", "carrier": "AA"}, {"N14228"}),
            Point("planes", 1, {"carrier": "AA", "origin": "JFK"}, []),
        ],
        batch="b",
        add=True,
    )
    assert written == 6 and len(server.seen) == 1
    sent = server.seen[0]
    assert (sent.dataset, sent.report, sent.batch, sent.add) == ("reports", "flights", "b", True)
    assert list(sent.metrics) == ["departures", "delay", "planes"] and list(sent.series_metrics) == [0, 0, 1, 2]
    assert [(one.key, list(one.values), list(one.series_values)) for one in sent.keys] == [
        ("carrier", ["UA", "AA"], [1, 2, 0, 2]),
        ("origin", ["JFK"], [0, 1, 0, 1]),
    ]
    assert list(sent.values.series) == [0, 0, 1] and list(sent.values.times) == [0, 1, 0]
    numbers = sent.values.values
    assert (list(numbers.integers), list(numbers.reals)) == ([3, -(1 << 63)], [2.5])
    assert list(numbers.is_real) == [False, True, False]
    assert list(sent.distributions.series) == [2] and list(sent.distributions.counts) == [2]
    assert list(sent.distributions.values) == [4.0, -2.5]
    assert list(sent.distincts.series) == [3, 3] and list(sent.distincts.counts) == [1, 0]
    assert list(sent.distincts.members) == [b"N14228"]
    # One kind of number does not say which is which.
    server.seen = []
    reports.write("r", [point(1.0), point(2.0)])
    assert list(server.seen[0].values.values.is_real) == [] and list(server.seen[0].values.values.reals) == [1.0, 2.0]
    server.seen = []
    assert reports.write("r", []) == 0 and server.seen == []


def many(count=120_000):
    return (point(at, at) for at in range(count))


def test_large_writes(reports, server):
    """Any number of points becomes batches, which have IDs of their own and are cut at the same places each time."""
    for batch, names in (("", ["", "", ""]), ("load", ["load", "load#1", "load#2"])):
        server.seen, server.calls = [], 0
        assert reports.write("r", many(), batch=batch) == 120_000
        assert [one.batch for one in server.seen] == names and server.calls == 1
        assert [len(one.values.times) for one in server.seen] == [50_000, 50_000, 20_000]
        times = [time for one in server.seen for time in one.values.times]
        assert times == list(range(120_000))
    # Large points make more batches.
    server.seen = []
    reports.write("r", (point([bytes(1_000_000)] * 3, at) for at in range(4)))
    assert [len(one.distincts.times) for one in server.seen] == [2, 2]


def test_writes_that_fail(reports, server):
    write = lambda **more: reports.write("r", many(), **more)
    # Lost: with an ID, what has no answer is sent again; without, it is in doubt.
    server.plan, server.seen, server.calls = [None, LOST], [], 0
    assert write(batch="b") == 120_000 and server.calls == 2
    assert {one.batch for one in server.seen} == {"b", "b#1", "b#2"}
    assert [one.batch for one in server.seen][-2:] == ["b#1", "b#2"], "in their order"
    server.plan, server.calls = [None, LOST], 0
    error = fails(kvstore.BatchError, "UNAVAILABLE", write)
    assert error.in_doubt and server.calls == 1
    assert error.results[0] == 50_000 and all(one.in_doubt for one in error.results[1:]), error.results
    # Turned away before anything was done.
    server.plan, server.calls = [REFUSED, REFUSED], 0
    assert write() == 120_000 and server.calls == 3
    # A batch that fails ends the write; what was sent behind it has its own answer.
    server.plan, server.seen = [None, DEAD_MASTER], []
    load = lambda: reports.write("r", many(1_000_000), batch="b")
    error = fails(kvstore.BatchError, "entry 1: UNAVAILABLE: host db1", load)
    assert error.results[0] == 50_000 and error.results[2:] == [50_000] and len(server.seen) == 3, error.results
    # One batch has its error alone. Some of its rows may be written, unless it was refused as it is.
    for answer, kind, in_doubt in (
        (DEAD_MASTER, kvstore.Unavailable, True),
        (messages.Error(code=5, message="metrics: there is none"), kvstore.NotFound, False),
    ):
        server.plan = [answer]
        assert fails(kind, answer.message, lambda: reports.write("r", [point(1)])).in_doubt == in_doubt
    server.plan = [LOST] * 100
    short = lambda: reports.write("r", [point(1)], batch="b", timeout_s=0.3)
    # On a busy machine the time may also end in the middle of an attempt.
    error = fails((kvstore.Unavailable, kvstore.DeadlineExceeded), "may or may not", short)
    assert error.in_doubt
    # A later attempt that is refused says nothing of an earlier one that was lost.
    server.plan = [LOST] + [REFUSED] * 100
    error = fails((kvstore.ResourceExhausted, kvstore.DeadlineExceeded), "", short)
    assert error.in_doubt
    server.plan = []
    for report, text in (("miscounted", "another number of points"), ("short", "fewer batches")):
        points = many() if report == "short" else [point(1)]
        error = fails(kvstore.Error, text, lambda: reports.write(report, points))
        assert error.in_doubt, error


def test_mistakes_in_the_middle(reports, server):
    """A point that is wrong behind others that were sent does not hide what became of those."""
    points = itertools.chain(many(), [point("x")])
    error = fails(kvstore.BatchError, "points[120000].value", lambda: reports.write("r", points))
    assert error.results[:2] == [50_000, 50_000] and isinstance(error.results[-1], kvstore.InvalidArgument)
    assert error.in_doubt

    def broken():
        yield from many()
        raise ZeroDivisionError

    fails(ZeroDivisionError, "", lambda: reports.write("r", broken()))
    assert reports.write("r", [point(1)]) == 1


def answer(points, **more):
    series = reports_pb2.QueryReportResponse.Series(metric="c", points=points, **more)
    end = reports_pb2.QueryReportResponse()
    end.CopyFrom(END)
    return [reports_pb2.QueryReportResponse(series=[series]), end]


def test_answers(reports, server):
    query = lambda **more: reports.query("r", ["c"], 0, 1000, **more)
    server.answers = answer(
        {"times": [0, 1, 2], "values": {"integers": [1 << 62, -1], "reals": [0.5], "is_real": [False, True, False]}},
        segments=["US"],
        compared={"times": [5], "values": {"reals": [1.0]}},
        filter="f",
    )
    server.answers[1].end.cost.rows = 7
    server.answers[1].end.missing.append("metric 'c': host db1")
    server.answers[1].end.parts.add(metric="c", salt=3)
    found = query(group_by=["country"], compare_to="-7d")
    assert found.series == [
        kvstore.Series("c", "f", {"country": "US"}, [(0, 1 << 62), (1, 0.5), (2, -1)], [(5, 1.0)])
    ], found
    assert [type(value) for _, value in found.series[0].points] == [int, float, int]
    assert found.partial and found.missing == ["metric 'c': host db1"] and found.cost.rows == 7
    assert found.parts[0].salt == 3 and found.timezone == "UTC"
    good = {"times": [0], "values": {"integers": [1]}}
    for text, answers in (
        ("before its end", []),
        ("before its end", answer(good)[:1]),
        ("before its end", answer(good)[::-1]),
        ("other segments", answer(good, segments=["US"])),
        ("more times than values", answer({"times": [0]})),
        ("more times than values", answer({"times": [0], "values": {"integers": [1], "reals": [1.0]}})),
        ("do not say which", answer({"times": [0, 1], "values": {"integers": [1], "reals": [1.0]}})),
        ("do not fit together", answer({"times": [0], "values": {"integers": [1], "is_real": [True]}})),
        ("do not fit together", answer({"times": [0], "values": {"integers": [1], "is_real": [False, False]}})),
        ("not finite", answer({"times": [0], "values": {"reals": [math.inf]}})),
        ("order of their times", answer({"times": [1, 1], "values": {"integers": [1, 2]}})),
        ("comparison", answer(good, compared=good)),
    ):
        server.answers = answers
        fails(kvstore.BadAnswer, text, query)
    server.answers = answer(good)
    fails(kvstore.BadAnswer, "comparison", lambda: query(compare_to="-7d"))

    # A query is a read: it begins again.
    server.plan, server.seen = [None, LOST, REFUSED], []
    assert query().series[0].points == [(0, 1)] and len(server.seen) == 3
    server.plan = [(grpc.StatusCode.NOT_FOUND, "failed")]
    fails(kvstore.NotFound, "as planned", query)
    server.plan = [LOST] * 100
    fails(kvstore.Unavailable, "server 127.0.0.1:", lambda: query(timeout_s=1))
    server.plan = []


def test_reports(reports, server):
    server.answers, server.seen = [reports_pb2.CreateReportResponse()], []
    reports.create(
        "flights",
        ["carrier", SegmentKey("origin", "?")],
        ["departures", Metric("delay", "distribution")],
        resolution="1h",
        period="30d",
        salts=8,
        retention="400d",
    )
    sent = server.seen[0]
    assert len(sent.attempt.request_id) == 16 and sent.dataset == "reports"
    assert [(key.name, key.HasField("default_value"), key.default_value) for key in sent.report.keys] == [
        ("carrier", False, ""),
        ("origin", True, "?"),
    ]
    assert [(one.name, one.kind) for one in sent.report.metrics] == [("departures", 1), ("delay", 3)]
    made = sent.report
    assert (made.resolution_ms, made.period_s, made.salts) == (3_600_000, 30 * 86_400, 8)
    assert made.retention_ms == 400 * 86_400_000
    server.answers, server.seen = [reports_pb2.AlterReportResponse()], []
    reports.alter("flights", retention=0, rollups=[Rollup(["carrier"], "1d")])
    reports.alter("flights", add_segment_key=SegmentKey("dest", "?"), add_metrics=["seats"])
    first, second = server.seen
    assert first.HasField("retention_ms") and first.retention_ms == 0
    assert [(list(one.keys), one.step_ms) for one in first.rollups.rollups] == [(["carrier"], 86_400_000)]
    assert not second.HasField("retention_ms") and not second.HasField("rollups") and second.add_key.name == "dest"

    # In several messages.
    part = reports_pb2.GetReportResponse
    server.answers = [
        part(
            report={
                "name": "flights",
                "id": 7,
                "resolution_ms": 1000,
                "period_s": 60,
                "salts": 4,
                "keys": [{"name": "carrier"}, {"name": "origin", "default_value": "?"}],
                "metrics": [{"name": "a", "kind": 1}],
                "rollups": [{"keys": ["carrier"], "step_ms": 1000}],
            },
            segment_values=[{"key": "carrier", "values": ["UA"]}],
        ),
        part(report={"metrics": [{"name": "b", "kind": 2}]}, segment_values=[{"key": "carrier", "values": ["AA"]}]),
    ]
    server.seen, server.plan = [], [None, LOST]
    found = reports.describe("flights")
    assert found.segment_keys == [SegmentKey("carrier"), SegmentKey("origin", "?")] and found.id == 7
    assert found.metrics == [Metric("a"), Metric("b", "distinct")] and found.segment_values == {"carrier": ["UA", "AA"]}
    assert found.rollups == [Rollup(("carrier",), 1000)] and len(server.seen) == 2
    assert server.seen[0].all_metrics and server.seen[0].segment_values
    server.seen = []
    reports.info("flights", ["a"])
    sent = server.seen[0]
    assert list(sent.metrics) == ["a"] and not sent.all_metrics and not sent.segment_values
    fails(kvstore.BadAnswer, "another report", lambda: reports.info("other"))
    server.answers[1].report.metrics[0].kind = 9
    fails(kvstore.BadAnswer, "of a kind", lambda: reports.info("flights"))

    server.answers = [reports_pb2.ListReportsResponse(reports=names) for names in (["a", "b"], ["c"])]
    assert reports.list() == ["a", "b", "c"]
    # Writes have a request ID, under which they are tried again.
    server.answers, server.seen, server.plan = [reports_pb2.DeletePointsResponse(rows=3)], [], [LOST]
    assert reports.delete("r", ["a"], "2013-01-01", datetime.date(2013, 1, 2)) == 3
    one, two = server.seen
    assert one.attempt.request_id == two.attempt.request_id and two.attempt.instance == b"one"
    assert (getattr(one, "from"), one.to) == (1_356_998_400_000, 1_357_084_800_000)
    server.answers, server.plan = [reports_pb2.DropReportResponse()], [(UNAVAILABLE, "in-doubt")]
    assert fails(kvstore.Unavailable, "", lambda: reports.drop("r")).in_doubt


def test_upkeep(reports, server):
    server.answers = [reports_pb2.CompactReportResponse(), reports_pb2.CompactReportResponse(result={"rows": 5})]
    assert reports.compact("r").rows == 5
    server.answers = [reports_pb2.MakeRollupsResponse(result={"rows_written": 2})]
    assert reports.make_rollups("r").rows_written == 2
    server.answers = [reports_pb2.CompactReportResponse()]
    fails(kvstore.BadAnswer, "without a result", lambda: reports.compact("r"))
    server.plan, server.seen = [LOST], []
    fails(kvstore.Unavailable, "", lambda: reports.compact("r"))
    assert len(server.seen) == 1, "it is not tried again"
    server.plan = []


def test_pandas(reports, server):
    """A frame, where pandas is; else an error that says so."""
    server.answers = [
        *answer(
            {"times": [0, 86_400_000], "values": {"integers": [(1 << 62) + 1, 2]}},
            segments=["US"],
            compared={"times": [5], "values": {"reals": [1.0]}},
        )[:1],
        *answer(
            {"times": [86_400_000], "values": {"reals": [0.5]}},
            segments=["CA"],
            compared=reports_pb2.SeriesPoints(),
        ),
    ]
    found = reports.query("r", ["c"], 0, 1000, group_by=["country"], timezone="Europe/Berlin", compare_to="-7d")
    try:
        import pandas
    except ImportError:
        fails(ImportError, "to_pandas() needs pandas", found.to_pandas)
        return
    frame = found.to_pandas()
    assert frame.columns.names == ["metric", "filter", "country"]
    assert list(frame.columns) == [("c", "", "US"), ("c", "", "CA")]
    assert frame.index.name == "time" and str(frame.index.tz) == "Europe/Berlin"
    assert [str(time) for time in frame.index] == ["1970-01-01 01:00:00+01:00", "1970-01-02 01:00:00+01:00"]
    assert frame["c", "", "US"].dtype == "Int64" and frame["c", "", "US"].tolist() == [(1 << 62) + 1, 2]
    assert frame["c", "", "CA"].dtype == "float64" and math.isnan(frame["c", "", "CA"].iloc[0])
    assert frame["c", "", "CA"].iloc[1] == 0.5
    other = found.to_pandas(compared=True)
    assert len(other) == 1 and other["c", "", "US"].iloc[0] == 1.0 and other["c", "", "CA"].isna().all()
    server.answers = [END]
    empty = reports.query("r", ["c"], 0, 1000, group_by=["country"]).to_pandas()
    assert empty.shape == (0, 0) and empty.columns.names == ["metric", "filter", "country"]


@contextlib.contextmanager
def serving():
    server = Answering()
    # As large as a real server takes them.
    options = [("grpc.max_receive_message_length", 20 << 20)]
    listening = grpc.server(futures.ThreadPoolExecutor(8), options=options)
    kvstore_pb2_grpc.add_KVStoreServicer_to_server(server, listening)
    reports_pb2_grpc.add_ReportsServicer_to_server(server, listening)
    address = f"127.0.0.1:{listening.add_insecure_port('127.0.0.1:0')}"
    listening.start()
    yield server, address
    listening.stop(None).wait()


def run(tests):
    """Runs the functions test_... of a module, each with calls on reports and the server that answers them."""
    with serving() as (server, address), connect(address) as store:
        for name, test in list(tests.items()):
            if name.startswith("test_"):
                server.plan = []
                test(store.reports(), server)
        assert store.reports("others")
        fails(kvstore.InvalidArgument, "dataset: is of type int", lambda: store.reports(5))


if __name__ == "__main__":
    run(globals())
