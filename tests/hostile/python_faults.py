"""What a Python client (KV_TEST_CLIENT) does with errors of the server, of single entries, and of the connection."""

import contextlib
import queue
import threading
import time
from concurrent import futures

import grpc
import kvstore
from kvstore import RowWrite, messages
from kvstore.v1 import kvstore_pb2_grpc
from python_clients import connect

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
DEAD_MASTER = messages.Error(code=14, message="host db1:3306: cannot be reached")


class Faulty(kvstore_pb2_grpc.KVStoreServicer):
    """Fails by a plan: `plan` has the ends of the next calls, (code, outcome or None), or None where they succeed.
    Calls on the dataset "hang" do not end; `hanging` has an event for each, which is set when its client has ended it."""

    def __init__(self):
        self.plan = []
        self.seen = []
        self.authorizations = []
        self.hanging = queue.Queue()

    def hang(self, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        self.hanging.put(ended)
        ended.wait(60)
        context.abort(grpc.StatusCode.CANCELLED, "it was ended")

    def fail(self, context):
        self.authorizations.append(dict(context.invocation_metadata()).get("authorization"))
        step = self.plan.pop(0) if self.plan else None
        if step is not None:
            code, outcome = step
            if outcome is not None:
                context.set_trailing_metadata((("kvstore-outcome", outcome),))
            context.abort(code, "as planned")

    def meet(self, request, context):
        kept = type(request)()
        kept.CopyFrom(request)
        self.seen.append(kept)
        self.fail(context)

    def GetServer(self, request, context):
        return messages.GetServerResponse(instance=b"one", clock_us=10_000_000_000)

    def GetRow(self, request, context):
        if request.dataset == "hang":
            self.hang(context)
        self.meet(request, context)
        return messages.GetRowResponse()

    def PutRow(self, request, context):
        if request.dataset == "hang":
            self.hang(context)
        self.meet(request, context)
        return messages.PutRowResponse(timestamp=7)

    def CreateObject(self, request, context):
        self.meet(request, context)
        return messages.CreateObjectResponse(id=5)

    def UpdateObject(self, request, context):
        self.meet(request, context)

    def GetObject(self, request, context):
        return messages.GetObjectResponse(object=messages.Object(id=request.id, data=b"{}", timestamp=3))

    def DeleteRows(self, request, context):
        self.meet(request, context)
        return messages.DeleteRowsResponse(results=[messages.DeleteRowsResponse.Result()] * len(request.deletes))

    def GetObjects(self, request, context):
        self.seen.append(list(request.ids))
        for object_id in request.ids:
            result = messages.GetObjectsResponse.Result()
            if object_id == 404:
                result.error.code, result.error.message = 5, "object: there is none"
            elif object_id == 503:
                result.error.CopyFrom(DEAD_MASTER)
            else:
                result.object.id = object_id
            yield messages.GetObjectsResponse(results=[result])
            self.fail(context)

    def GetRows(self, request, context):
        self.seen.append([read.row for read in request.reads])
        for read in request.reads:
            cells = [messages.Cell(timestamp=1, value=read.row)]
            result = messages.GetRowsResponse.Result(items=[messages.Item(column=b"c", cells=cells)])
            if read.row == b"dead":
                result = messages.GetRowsResponse.Result(error=DEAD_MASTER)
            yield messages.GetRowsResponse(results=[result])
            self.fail(context)

    def PutRows(self, request, context):
        doubt = messages.Error(code=14, message="lost", outcome="in-doubt")
        results = [messages.PutRowsResponse.Result(timestamp=1), messages.PutRowsResponse.Result(error=doubt)]
        return messages.PutRowsResponse(results=results)

    def ImportRows(self, requests, context):
        for request in requests:
            if request.dataset == "hang":
                self.hang(context)
            self.seen.append(len(request.writes))
            self.fail(context)
            yield messages.PutRowsResponse(results=[messages.PutRowsResponse.Result(timestamp=1)] * len(request.writes))

    def ListObjects(self, request, context):
        result = messages.ListObjectsResponse.Result
        gone = messages.Error(code=5, message="object: there is none")
        return messages.ListObjectsResponse(
            results=[
                result(entry=messages.MappingEntry(to=1), object=messages.Object(id=1)),
                result(entry=messages.MappingEntry(to=404), error=gone),
                result(entry=messages.MappingEntry(to=503), error=DEAD_MASTER),
            ]
        )

    def ScanRows(self, request, context):
        """Rows 0..9, of which the fifth comes in three pieces. Each piece is a message, and the marker is a number."""
        pieces = [(b"r%d" % n, part, n == 5 and part < 2) for n in range(10) for part in range(3 if n == 5 else 1)]
        begin = int(request.marker or b"0")
        self.seen.append((begin, request.limit))
        left = request.limit
        for at, (key, part, continues) in enumerate(pieces):
            if at < begin:
                continue
            item = messages.Item(column=b"c%d" % part, cells=[messages.Cell(timestamp=1, value=b"v")])
            row = messages.ScanRowsResponse.Row(key=key, items=[item], continues=continues)
            yield messages.ScanRowsResponse(rows=[row], marker=b"%d" % (at + 1))
            if request.dataset == "hang":
                self.hang(context)
            if left and not continues:
                left -= 1
                if left == 0:
                    return
            self.fail(context)


def fails(kind, text, call):
    try:
        found = call()
    except kind as caught:
        assert text in str(caught), caught
        return caught
    raise SystemExit(f"it went well: {found}")


def test_codes(store, server):
    """Each code has its class, and a call that failed with an error of the server is not retried."""
    classes = {
        "CANCELLED": kvstore.Cancelled,
        "INVALID_ARGUMENT": kvstore.InvalidArgument,
        "DEADLINE_EXCEEDED": kvstore.DeadlineExceeded,
        "NOT_FOUND": kvstore.NotFound,
        "ALREADY_EXISTS": kvstore.AlreadyExists,
        "PERMISSION_DENIED": kvstore.PermissionDenied,
        "RESOURCE_EXHAUSTED": kvstore.ResourceExhausted,
        "FAILED_PRECONDITION": kvstore.FailedPrecondition,
        "UNIMPLEMENTED": kvstore.Unimplemented,
        "INTERNAL": kvstore.Internal,
        "UNAVAILABLE": kvstore.Unavailable,
        "DATA_LOSS": kvstore.DataLoss,
        "UNAUTHENTICATED": kvstore.Unauthenticated,
        "ABORTED": kvstore.Error,
    }
    for name, kind in classes.items():
        server.plan = [(grpc.StatusCode[name], "failed")]
        error = fails(kvstore.Error, f"{name}: as planned", lambda: store.get_row("d", "r"))
        assert type(error) is kind and error.code == name and error.message == "as planned", error
        assert error.__cause__.code() == grpc.StatusCode[name] and not server.plan


def test_reads_again(store, server):
    for step in ((UNAVAILABLE, None), (grpc.StatusCode.CANCELLED, None), (grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")):
        server.plan, server.seen = [step] * 3, []
        assert store.get_row("d", "r") == {} and len(server.seen) == 4
    server.plan = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")] * 100
    fails(kvstore.ResourceExhausted, "as planned", lambda: store.get_row("d", "r", timeout_s=1))
    server.plan = [(UNAVAILABLE, None)] * 100
    fails(kvstore.Unavailable, "server 127.0.0.1:", lambda: store.get_row("d", "r", timeout_s=1))


def test_writes_again(store, server):
    """A write that was lost is retried with the same request ID, the instance of its first server, and its first time."""
    put = lambda **more: store.put_row("d", "r", {"c": "v"}, **more)
    server.plan, server.seen = [(UNAVAILABLE, None)], []
    assert put() == 7
    first, second = (request.attempt for request in server.seen)
    assert len(first.request_id) == 16 and first.request_id == second.request_id
    assert first.instance == b"" and second.instance == b"one"
    assert not first.HasField("sent_us") and 9_000_000_000 < second.sent_us < 10_000_000_000, second
    # A refused write was not done: the retry is the same attempt.
    server.plan, server.seen = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")], []
    assert put() == 7 and server.seen[1].attempt.instance == b""

    server.plan, server.seen = [(UNAVAILABLE, None)], []
    assert store.create_object("d", "{}") == 5
    assert [request.attempt.first for request in server.seen] == [True, False]
    server.seen = []
    store.create_object("d", "{}", request_id=bytes(16))
    store.create_object("d", "{}", request_id=bytes(16), first_attempt=True)
    assert [request.attempt.first for request in server.seen] == [False, True]
    assert {request.attempt.request_id for request in server.seen} == {bytes(16)}


def test_doubt(store, server):
    put = lambda **more: store.put_row("d", "r", {"c": "v"}, **more)
    # An error of the server; a lost write; and one that was lost first and then refused.
    for plan, kind, in_doubt in (
        ([(grpc.StatusCode.FAILED_PRECONDITION, "failed")], kvstore.FailedPrecondition, False),
        ([(UNAVAILABLE, "moved")], kvstore.Unavailable, False),
        ([(UNAVAILABLE, "in-doubt")], kvstore.Unavailable, True),
        ([(grpc.StatusCode.DEADLINE_EXCEEDED, None)], kvstore.DeadlineExceeded, True),
        ([(grpc.StatusCode.INTERNAL, None)], kvstore.Internal, True),
        ([(UNAVAILABLE, None), (grpc.StatusCode.FAILED_PRECONDITION, "failed")], kvstore.FailedPrecondition, True),
    ):
        server.plan = list(plan)
        error = fails(kind, "", put)
        assert error.in_doubt == in_doubt and not server.plan, error
        assert ("may or may not have happened" in str(error)) == in_doubt, error
    server.plan = [(UNAVAILABLE, None)] + [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")] * 100
    error = fails(kvstore.ResourceExhausted, "may or may not have happened", lambda: put(timeout_s=1))
    assert error.in_doubt
    server.plan = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")] * 100
    assert not fails(kvstore.ResourceExhausted, "", lambda: put(timeout_s=1)).in_doubt
    # It may have been written, so it is not retried.
    server.plan, server.seen = [(UNAVAILABLE, None), (grpc.StatusCode.FAILED_PRECONDITION, "failed")], []
    error = fails(kvstore.FailedPrecondition, "", lambda: store.transform_object("d", 1, lambda text: text))
    assert error.in_doubt and len(server.seen) == 2, server.seen
    server.plan = []


def test_objects(store, server):
    """None means that there is no such object, which a dead master does not say."""
    assert [one and one.id for one in store.get_objects("d", [1, 404, 2])] == [1, None, 2]
    text = "1 of 3 entries failed; the first of them, entry 1: UNAVAILABLE: host db1"
    error = fails(kvstore.BatchError, text, lambda: store.get_objects("d", [404, 503, 1]))
    assert error.code == "UNAVAILABLE" and error.results[0] is None and error.results[2].id == 1
    found = store.get_objects("d", [404, 503, 1], return_exceptions=True)
    assert found[0] is None and isinstance(found[1], kvstore.Unavailable) and found[2].id == 1
    joined = store.list_objects_page("d", 1, return_exceptions=True).entries
    assert joined[0].object.id == 1 and joined[1].object is None and isinstance(joined[2].object, kvstore.Unavailable)
    fails(kvstore.BatchError, "1 of 3", lambda: list(store.list_objects("d", 1)))


def test_batches_go_on(store, server):
    """A batch whose server is lost asks again for what is missing."""
    server.plan, server.seen = [None, (UNAVAILABLE, None), (UNAVAILABLE, None)], []
    assert [one.id for one in store.get_objects("d", [1, 2, 3, 4])] == [1, 2, 3, 4]
    assert server.seen == [[1, 2, 3, 4], [3, 4], [4]], server.seen
    server.plan, server.seen = [(UNAVAILABLE, None)], []
    results = store.get_rows("d", ["a", "dead", "b"], return_exceptions=True)
    assert results[0][b"c"][0].value == b"a" and results[2][b"c"][0].value == b"b"
    assert isinstance(results[1], kvstore.Unavailable) and server.seen == [[b"a", b"dead", b"b"], [b"dead", b"b"]]
    # Lost after the last one: nothing is missing.
    server.plan, server.seen = [(UNAVAILABLE, None)], []
    assert store.get_objects("d", [1])[0].id == 1 and server.seen == [[1]]


def test_writes_of_batches(store, server):
    error = fails(kvstore.BatchError, "1 of 2", lambda: store.put_rows("d", [RowWrite("r", {"c": "v"})] * 2))
    assert error.in_doubt and error.results[0] == 1 and error.results[1].in_doubt
    # Deletes of several messages: those behind one that failed are not sent.
    server.plan, server.seen = [None, (grpc.StatusCode.DEADLINE_EXCEEDED, "in-doubt")], []
    results = store.delete_rows("d", ["r"] * 5000, return_exceptions=True)
    assert results[:2000] == [None] * 2000 and len(server.seen) == 2
    assert all(one.in_doubt for one in results[2000:4000]) and len(results) == 5000
    assert all(not one.in_doubt and "not sent" in one.message for one in results[4000:])


def test_import(store, server):
    """Writes of five messages, of which two are in flight at a time."""
    writes = [RowWrite("r", {"c": "v"})] * 10_000
    assert store.put_rows("d", writes) == [1] * 10_000
    # Refused as a whole: retried.
    server.plan, server.seen = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")], []
    assert store.put_rows("d", writes) == [1] * 10_000 and server.seen == [2000] * 6, server.seen
    # Lost after the first message: not retried.
    server.plan = [None, (UNAVAILABLE, None)]
    error = fails(kvstore.BatchError, "8000 of 10000", lambda: store.put_rows("d", writes))
    results = error.results
    assert error.in_doubt and results[:2000] == [1] * 2000 and len(results) == 10_000
    sent = sum(one.in_doubt for one in results[2000:])
    assert 2000 <= sent <= 4000 and all(one.in_doubt for one in results[2000 : 2000 + sent]), sent
    assert all("not sent" in one.message and one.code == "UNAVAILABLE" for one in results[2000 + sent :])
    # Lost before any answer.
    server.plan = [(UNAVAILABLE, None)]
    error = fails(kvstore.BatchError, "10000 of 10000", lambda: store.put_rows("d", writes))
    assert error.results[0].in_doubt and not error.results[-1].in_doubt


def test_scans(store, server):
    """A scan goes on behind what it has, also inside a row, but not where the server refuses its marker."""
    whole = [b"r%d" % n for n in range(10)]
    lost, stopped = (UNAVAILABLE, None), (grpc.StatusCode.CANCELLED, None)
    for breaks in ([], [None, lost], [stopped] * 11, [None] * 5 + [lost] * 2):
        server.plan, server.seen = list(breaks), []
        rows = list(store.scan_rows("d"))
        assert [key for key, _ in rows] == whole, rows
        assert sorted(rows[5][1]) == [b"c0", b"c1", b"c2"] and all(len(row) == 1 for key, row in rows if key != b"r5")
        assert len(server.seen) == 1 + sum(step is not None for step in breaks), server.seen
    # A limit counts the rows that it has already.
    server.plan, server.seen = [None] * 3 + [(UNAVAILABLE, None)], []
    page = store.scan_page("d", limit=7)
    assert [key for key, _ in page.rows] == whole[:7] and page.marker == b"9"
    assert server.seen == [(0, 7), (4, 3)], server.seen
    assert [key for key, _ in store.scan_rows("d", marker=page.marker)] == whole[7:]
    # The error of the server for a marker from before a cutover, for example.
    server.plan = [None, (UNAVAILABLE, None), (grpc.StatusCode.FAILED_PRECONDITION, "failed")]
    rows = []
    fails(kvstore.FailedPrecondition, "as planned", lambda: rows.extend(store.scan_rows("d")))
    assert [key for key, _ in rows] == whole[:3] and not server.plan, rows


def test_token(address, server):
    """The token is sent with every kind of call."""
    server.authorizations = []
    with connect(address, token="secret") as store:
        store.get_row("d", "r")
        store.put_rows("d", [RowWrite("r", {"c": "v"})] * 5000)
        assert len(list(store.scan_rows("d"))) == 10
    assert server.authorizations == ["Bearer secret"] * (1 + 3 + 12), server.authorizations


def test_early_end(store, server):
    """A scan that its caller closes ends on the server, too."""
    rows = store.scan_rows("hang")
    assert next(rows)[0] == b"r0"
    ended = server.hanging.get(timeout=60)
    assert not ended.is_set()
    rows.close()
    assert ended.wait(60)


def test_close(address, server):
    """A client that is closed ends the calls in flight, in whatever thread or task."""
    store = connect(address)
    server.plan = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")] * 1000
    scan = store.scan_rows("hang")
    next(scan)
    with futures.ThreadPoolExecutor(4) as threads:
        under_way = [
            threads.submit(call)
            for call in (
                lambda: store.get_row("hang", "r"),
                lambda: store.put_row("hang", "r", {"c": "v"}),
                lambda: store.put_rows("hang", [RowWrite("r", {"c": "v"})] * 5000),
                # Mostly between two attempts.
                lambda: store.get_row("d", "r", timeout_s=60),
            )
        ]
        while len(server.plan) > 994:
            time.sleep(0.01)
        ended = [server.hanging.get(timeout=60) for _ in range(4)]
        store.close()
        errors = [call.exception(60) for call in under_way]
    assert all(one.wait(60) for one in ended)
    assert [one.code for one in errors[:3]] == ["UNAVAILABLE"] * 3, errors
    assert all("the client was closed" in str(one) for one in errors[:3]), errors
    # The error says why the last attempt failed, unless one was in flight.
    assert errors[3].code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE"), errors
    assert [one.in_doubt for one in errors] == [False, True, True, False], errors
    server.plan = []
    # A call that nobody was waiting for.
    fails(kvstore.Unavailable, "the client was closed", lambda: next(scan))
    for call in (lambda: store.get_row("d", "r"), lambda: next(store.scan_rows("d"))):
        fails(kvstore.InvalidArgument, "the client is closed", call)
    store.close()


@contextlib.contextmanager
def serving():
    """Returns a Faulty and its address."""
    server = Faulty()
    listening = grpc.server(futures.ThreadPoolExecutor(8))
    kvstore_pb2_grpc.add_KVStoreServicer_to_server(server, listening)
    address = f"127.0.0.1:{listening.add_insecure_port('127.0.0.1:0')}"
    listening.start()
    yield server, address
    listening.stop(None).wait()


def main():
    with serving() as (server, address):
        with connect(address) as store:
            for name, test in list(globals().items()):
                if name in ("test_token", "test_close"):
                    test(address, server)
                elif name.startswith("test_"):
                    test(store, server)


if __name__ == "__main__":
    main()
