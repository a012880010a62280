"""Every call of a Python client (KV_TEST_CLIENT) against a real server, and its errors for wrong arguments.

python_calls.py ADDRESS
"""

import pickle
import sys
import time

import grpc
import kvstore
from kvstore import Condition, RowDelete, RowRead, RowWrite
from kvstore._errors import entry_error
from python_clients import connect


def raises(kind, text, call):
    """Returns the Error of a call that must fail with it."""
    try:
        found = call()
    except kind as error:
        assert text in str(error), f"{error!s}: does not say {text!r}"
        return error
    raise AssertionError(f"it went well: {found!r}")


def values(row):
    return {column.decode(): [cell.value.decode() for cell in cells] for column, cells in row.items()}


def test_datasets(store):
    store.create_dataset("settings", max_versions=3, ttl_ms=86_400_000, durability="machine", compression="zstd")
    found = store.get_dataset("settings")
    assert (found.shape, found.max_versions, found.ttl_ms) == ("rows", 3, 86_400_000), found
    assert (found.durability, found.compression) == ("machine", "zstd"), found
    store.alter_dataset("settings", max_versions=7)
    store.alter_dataset("settings", ttl_ms=0, durability="process")
    found = store.get_dataset("settings")
    assert (found.max_versions, found.ttl_ms, found.durability) == (7, 0, "process"), found
    assert found in store.list_datasets()
    assert store.get_stats("settings").approximate_entries == 0
    raises(kvstore.FailedPrecondition, "keep-changes-ms", lambda: store.read_changes("settings"))
    store.alter_dataset("settings", keep_changes_ms=60_000)
    assert store.get_dataset("settings").keep_changes_ms == 60_000
    store.put_row("settings", "r", {"c": "v"})
    store.delete_row("settings", "r", ["c"])
    page = store.read_changes("settings", "begin", limit=1)
    (change,) = page.changes
    assert change.what == kvstore.RowChange(b"r", b"c", []), change
    assert page.complete_until_ms == 0, page
    page = store.read_changes("settings", change.token)
    assert len(page.changes) == 1 and page.complete_until_ms > 0, page
    assert store.read_changes("settings", page.token).changes == []
    raises(kvstore.InvalidArgument, "from", lambda: store.read_changes("settings", "yesterday"))
    raises(kvstore.InvalidArgument, "from", lambda: next(store.changes("settings", "yesterday")))
    pages = store.changes("settings", change.token, timeout_s=60)
    told = next(pages)
    assert told.changes == page.changes and told.token == page.token
    pages.close()
    pages = store.changes("settings", page.token)
    assert next(pages).changes == []
    store.put_row("settings", "waited-for", {"a": "1"})
    for told in pages:
        if told.changes:
            break
    pages.close()
    assert [change.what.row for change in told.changes] == [b"waited-for"]
    store.set_consumer("settings", "search", page.token)
    (consumer,) = store.list_consumers("settings")
    assert (consumer.name, consumer.token) == ("search", page.token) and consumer.lag_ms > 0, consumer
    store.drop_consumer("settings", "search")
    assert store.list_consumers("settings") == []
    raises(kvstore.NotFound, "search", lambda: store.drop_consumer("settings", "search"))
    raises(kvstore.InvalidArgument, "name", lambda: store.set_consumer("settings", "no/name", "now"))
    raises(kvstore.AlreadyExists, "settings", lambda: store.create_dataset("settings"))
    raises(kvstore.NotFound, "incarnation", lambda: store.drop_dataset("settings", incarnation=1))
    store.drop_dataset("settings", incarnation=found.incarnation)
    raises(kvstore.NotFound, "settings", lambda: store.get_dataset("settings"))
    assert "kvstore_" in store.get_metrics()


def test_mistakes(store):
    """Each error names the field, what is wrong and what is allowed, and is raised before anything is sent."""
    bad = kvstore.InvalidArgument
    create = store.create_dataset
    for text, call in (
        ("shape: 'row' is none of rows, objects, mappings", lambda: create("x", "row")),
        ("durability: 'disk' is none of process, machine", lambda: create("x", durability="disk")),
        ("compression: 4 is none of none, lz4, zstd", lambda: create("x", compression=4)),
        ("ttl: is none of the settings", lambda: create("x", ttl=3)),
        ("do you mean ttl_ms", lambda: create("x", ttl=3)),
        ("do you mean max_versions", lambda: store.alter_dataset("x", versions=3)),
        ("ttl_ms: 1.5 is of type float; it is a whole number", lambda: create("x", ttl_ms=1.5)),
        ("max_versions: -1 is out of range 0..4294967295", lambda: create("x", max_versions=-1)),
        ("type: 1024 is out of range 1..1023", lambda: create("x", "objects", type=1024)),
        ("name: is of type int; it is a str", lambda: create(5)),
        ("value: is of type int; it is bytes or a str", lambda: store.put_row("x", "r", {"c": 3})),
        ("column: is of type int", lambda: store.put_row("x", "r", {3: "v"})),
        ("values: is empty", lambda: store.put_row("x", "r", {})),
        ("values: is of type str", lambda: store.put_row("x", "r", "v")),
        ("row: is None; it is bytes or a str", lambda: store.get_row("x", None)),
        ("row: has 0 bytes; it has 1 to 1024", lambda: store.get_row("x", "")),
        ("row: has 1025 bytes", lambda: store.get_row("x", "r" * 1025)),
        ("value: has 4194305 bytes; it has 0 to 4194304", lambda: store.put_row("x", "r", {"c": bytes(4194305)})),
        ("columns: is of type str; it is a list", lambda: store.get_row("x", "r", columns="click")),
        ("columns: has 0 entries", lambda: store.get_row("x", "r", columns=[])),
        ("after_column: has 1025 bytes", lambda: store.get_row("x", "r", after_column="c" * 1025)),
        ("after_column: is of type int", lambda: store.get_row_page("x", "r", after_column=7)),
        ("versions: 0 is out of range 1..", lambda: store.get_row("x", "r", versions=0)),
        ("limit: 0 is out of range 1..", lambda: store.get_row_page("x", "r", limit=0)),
        ("the range [start, end) is empty", lambda: store.scan_rows("x", start_timestamp=5, end_timestamp=5)),
        ("start: is not before end", lambda: store.scan_rows("x", "b", "a")),
        ("condition: is of type dict", lambda: store.put_row("x", "r", {"c": "v"}, condition={"c": None})),
        ("columns, cells: give one", lambda: store.delete_row("x", "r", ["c"], cells=[("c", 1)])),
        ("timestamp: True is of type bool", lambda: store.put_row("x", "r", {"c": "v"}, timestamp=True)),
        ("data: is of type dict; it is JSON text: json.dumps", lambda: store.create_object("x", {"a": 1})),
        ("near, shard: give one", lambda: store.create_object("x", "{}", 1, 2)),
        ("object_id: is of type str; it is a whole number, 0 to 4611686018427387903", lambda: store.get_object("x", "7")),
        ("data: is only with expected_timestamp", lambda: store.update_object("x", 7, data="{}")),
        ("request_id: has 3 bytes", lambda: store.create_object("x", "{}", request_id="abc")),
        ("limit: 10001 is out of range 1..10000", lambda: store.list_mapping_page("x", 1, limit=10001)),
        ("writes: has 0 entries", lambda: store.put_rows("x", [])),
        ("reads: has 10001 entries; it has 1 to 10000", lambda: store.get_rows("x", ["r"] * 10001)),
        ("wanted: 0 is out of range", lambda: store.list_partitions("x", 0)),
        ("timeout_s: 0 is no time", lambda: store.get_row("x", "r", timeout_s=0)),
        ("timeout_s: '5' is of type str", lambda: store.get_row("x", "r", timeout_s="5")),
        ("address: 'nowhere' is not an address; give", lambda: connect("nowhere")),
        ("address: the port of '127.0.0.1:99999' is not 1 to 65535", lambda: connect("127.0.0.1:99999")),
        ("cert, key: one without the other", lambda: connect("a:1", ca="/dev/null", cert="c.pem")),
        ("cert: is only for an encrypted connection", lambda: connect("a:1", cert="c.pem", key="k.pem")),
        ("ca: [Errno 2]", lambda: connect("a:1", ca="/nowhere/ca.pem")),
    ):
        error = raises(bad, text, call)
        assert isinstance(error, ValueError) and error.__cause__ is None or "Errno" in text, error
        assert error.code == "INVALID_ARGUMENT" and not error.in_doubt
    error = raises(bad, "dataset", lambda: create("no/slash"))
    assert isinstance(error.__cause__, grpc.RpcError), "this one is the server's"
    # No key or value is in a message.
    error = raises(bad, "column", lambda: store.put_row("x", "r", {"SECRET" * 1000: "SECRET"}))
    assert "SECRET" not in str(error), error


def test_rows(store):
    store.create_dataset("rows", max_versions=0)
    error = raises(kvstore.NotFound, "NOT_FOUND: dataset: there is none named 'none'", lambda: store.get_row("none", "r"))
    assert isinstance(error.__cause__, grpc.RpcError) and not error.in_doubt
    row = bytes(range(256))
    assert store.put_row("rows", row, {b"\x00\xff": b"\xff\x00"}, timestamp=5) is None
    assert store.get_row("rows", row) == {b"\x00\xff": [kvstore.Cell(5, b"\xff\x00")]}
    assert store.put_row("rows", "r", {"c": "assigned"}, sync=True) > 1_600_000_000_000
    store.delete_row("rows", "r")
    assert store.get_row("rows", "r") == {}

    # Cells of their own times; time ranges; versions.
    store.put_row("rows", "r", [kvstore.CellWrite("c", f"v{n}", n) for n in range(1, 9)] + [("d", "w", 3)])
    assert values(store.get_row("rows", "r", versions=2)) == {"c": ["v8", "v7"], "d": ["w"]}
    assert values(store.get_row("rows", "r", start_timestamp=3, end_timestamp=5, versions=9)) == {
        "c": ["v4", "v3"],
        "d": ["w"],
    }
    assert values(store.get_row("rows", "r", columns=["d", b"none"])) == {"d": ["w"]}
    store.delete_row("rows", "r", cells=[("c", 8), kvstore.CellName("c", 7)])
    assert values(store.get_row("rows", "r")) == {"c": ["v6"], "d": ["w"]}
    store.delete_row("rows", "r", ["c"])
    assert values(store.get_row("rows", "r")) == {"d": ["w"]}

    # Conditions.
    put = lambda value, condition: store.put_row("rows", "once", {"c": value}, condition=condition)
    put("1", Condition("c"))
    raises(kvstore.AlreadyExists, "ALREADY_EXISTS", lambda: put("2", Condition("c")))
    raises(kvstore.FailedPrecondition, "FAILED_PRECONDITION", lambda: put("2", Condition("c", "0")))
    put("2", Condition("c", "1"))
    assert values(store.get_row("rows", "once")) == {"c": ["2"]}


def test_pages(store):
    store.create_dataset("pages", max_versions=0)
    store.put_row("pages", "wide", {f"c{n:04}": f"v{n}" for n in range(2500)})
    columns, marker, pages = [], b"", 0
    while True:
        page = store.get_row_page("pages", "wide", limit=1000, marker=marker)
        assert len(page) <= 1000
        columns.extend(page)
        pages += 1
        marker = page.marker
        if not marker:
            break
    assert pages == 3 and columns == [b"c%04d" % n for n in range(2500)], pages
    assert len(store.get_row_page("pages", "wide")) == 100
    whole = store.get_row("pages", "wide")
    assert list(whole) == columns and whole.marker == b""
    assert whole[b"c0042"][0].value == b"v42"
    # Behind a column that there is, or is not.
    assert list(store.get_row_page("pages", "wide", limit=2, after_column="c0041")) == columns[42:44]
    assert list(store.get_row("pages", "wide", after_column=b"c0041x")) == columns[42:]
    assert [column for column, _ in store.iter_row("pages", "wide", after_column="c0041")] == columns[42:]
    (page,) = store.get_rows("pages", [RowRead("wide", limit=1, after_column="c0041")])
    assert list(page) == [b"c0042"]
    page = store.get_row_page("pages", "wide", limit=1, marker=page.marker, after_column="c2000")
    assert list(page) == [b"c0043"], "the marker counts, the column does not"
    raises(kvstore.InvalidArgument, "marker", lambda: store.get_row_page("pages", "wide", marker="made up"))
    raises(kvstore.DeadlineExceeded, "timeout_s", lambda: slowly(store.iter_row("pages", "wide", timeout_s=0.2)))
    # Pages of 4 MiB; a column that continues on the next page is returned once.
    for n in range(12):
        store.put_row("pages", "large", {"a": b"x" * 1_000_000, f"c{n:02}": b"x" * 1_000_000})
    assert 0 < len(store.get_row_page("pages", "large", versions=12)) < 13
    found = list(store.iter_row("pages", "large", versions=12))
    assert [column for column, _ in found] == [b"a"] + [b"c%02d" % n for n in range(12)]
    assert [len(cells) for _, cells in found] == [12] + [1] * 12
    assert len({cell.timestamp for cell in found[0][1]}) == 12
    assert len(store.get_row("pages", "large")) == 13


def slowly(rows):
    """Takes the first item, and the others when a timeout_s of 0.1 has passed."""
    next(rows)
    time.sleep(0.2)
    return list(rows)


def test_batches(store):
    store.create_dataset("batches")
    # Several messages each way: more than 2,000 entries and more than 4 MiB.
    writes = [RowWrite(f"r{n:04}", {"c": b"%d" % n + b"x" * 3000}) for n in range(4500)]
    assert all(stamp > 0 for stamp in store.put_rows("batches", writes))
    assert store.put_rows("batches", [RowWrite("given", {"c": "v"}, timestamp=7)]) == [None]
    rows = store.get_rows("batches", [f"r{n:04}" for n in range(4500)])
    assert [int(row[b"c"][0].value.rstrip(b"x")) for row in rows] == list(range(4500))
    assert store.get_rows("batches", ["none"]) == [{}]

    # An entry that may or may not have been written says so; an older server says nothing of it.
    lost = dict(code=14, message="lost at COMMIT")
    assert entry_error(kvstore.messages.Error(**lost, outcome="in-doubt")).in_doubt
    assert not entry_error(kvstore.messages.Error(**lost)).in_doubt

    # Each on its own.
    writes = [
        RowWrite("given", {"c": "w"}, condition=Condition("c")),
        RowWrite("new", {"c": "w"}, condition=Condition("c")),
        RowWrite("", {"c": "w"}),
        RowWrite("given", {"c": 3}),
        "no write",
    ]
    text = "4 of 5 entries failed; the first of them, entry 0: ALREADY_EXISTS"
    error = raises(kvstore.BatchError, text, lambda: store.put_rows("batches", writes))
    kinds = [type(one).__name__ for one in error.results]
    assert kinds == ["AlreadyExists", "int"] + ["InvalidArgument"] * 3, kinds
    assert not error.in_doubt and error.code == "ALREADY_EXISTS"
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error) and copied.results[0].code == "ALREADY_EXISTS"
    results = store.put_rows("batches", writes, return_exceptions=True)
    assert [type(one).__name__ for one in results] == ["AlreadyExists"] * 2 + ["InvalidArgument"] * 3, results
    reads = ["new", RowRead("given", columns=["none"]), RowRead("given", marker="made up"), RowRead("r0001", versions=0)]
    results = store.get_rows("batches", reads, return_exceptions=True)
    assert values(results[0]) == {"c": ["w"]} and results[1] == {}, results
    assert [one.code for one in results[2:]] == ["INVALID_ARGUMENT"] * 2
    raises(kvstore.BatchError, "2 of 4", lambda: store.get_rows("batches", reads))
    raises(kvstore.NotFound, "none", lambda: store.get_rows("none", ["r"]))
    raises(kvstore.NotFound, "none", lambda: store.put_rows("none", [RowWrite("r", {"c": "v"})]))

    assert store.delete_rows("batches", [f"r{n:04}" for n in range(4400)]) == [None] * 4400
    deletes = [RowDelete("r4400", columns=["c"]), RowDelete("r4401", cells=[("c", 1)]), ""]
    results = store.delete_rows("batches", deletes, return_exceptions=True)
    assert results[0] is None and [one.code for one in results[1:]] == ["FAILED_PRECONDITION", "INVALID_ARGUMENT"]
    left = [key for key, _ in store.scan_rows("batches")]
    assert left == [b"given", b"new"] + [b"r%04d" % n for n in range(4401, 4500)], left

    # Answers of 64 MiB; the entries beyond are errors.
    for n in range(20):
        store.put_row("batches", f"z{n:02}", {"c": bytes(4_000_000)})
    results = store.get_rows("batches", [f"z{n:02}" for n in range(20)], return_exceptions=True)
    full = [isinstance(one, kvstore.ResourceExhausted) for one in results]
    assert full == [False] * 17 + [True] * 3, full


def test_scans(store):
    store.create_dataset("scans", max_versions=0)
    store.put_rows("scans", [RowWrite(f"r{n:04}", {"c": f"v{n}", "d": "w"}, timestamp=n + 1) for n in range(1000)])
    for n in range(12):
        store.put_row("scans", "s", {f"c{n:02}": b"x" * 1_000_000})
    rows = dict(store.scan_rows("scans"))
    assert list(rows) == [b"r%04d" % n for n in range(1000)] + [b"s"] and len(rows[b"s"]) == 12
    assert [key for key, _ in store.scan_rows("scans", "r0003", "r0006")] == [b"r0003", b"r0004", b"r0005"]
    assert values(next(store.scan_rows("scans", columns=["d"]))[1]) == {"d": ["w"]}
    assert [key for key, _ in store.scan_rows("scans", start_timestamp=10, end_timestamp=12)] == [b"r0009", b"r0010"]
    raises(kvstore.NotFound, "none", lambda: next(store.scan_rows("none")))

    # Pages, the large row among them; the marker is good for a scan of the rest.
    found, marker = [], b""
    while True:
        page = store.scan_page("scans", limit=300, marker=marker)
        assert len(page.rows) <= 300
        found.extend(page.rows)
        marker = page.marker
        if not marker:
            break
    assert dict(found) == rows and len(found) == len(rows)
    marker = store.scan_page("scans", limit=990).marker
    assert [key for key, _ in store.scan_rows("scans", marker=marker)] == list(rows)[990:]

    parts = store.list_partitions("scans", 4)
    assert parts and parts[0].start == b"" and parts[-1].end == b"", parts
    found = [key for part in parts for key, _ in store.scan_rows("scans", part.start, part.end, shard=part.shard)]
    assert found == list(rows)
    raises(kvstore.InvalidArgument, "", lambda: next(store.scan_rows("scans", shard="none")))


def test_compact(store):
    store.create_dataset("surplus", max_versions=1)
    for n in range(50):
        store.put_row("surplus", "r", {"c": "v"}, timestamp=n)
    calls = []
    result = store.compact("surplus", lambda done, total: calls.append((done, total)))
    assert result.surplus_cells == 49 and result.expired_cells == 0, result
    assert store.compact("surplus").surplus_cells == 0
    raises(kvstore.NotFound, "none", lambda: store.compact("none"))


def test_objects(store, others):
    store.create_dataset("objects", "objects", type=77)
    one = store.create_object("objects", '{"n": 1}', shard=3)
    two = store.create_object("objects", b'{"n": 2}', near=one)
    assert one >> 46 == two >> 46 == 3
    again = bytes(range(16))
    assert store.create_object("objects", '{"n": 3}', request_id=again) == store.create_object(
        "objects", '{"n": 3}', request_id=again
    )
    found = store.get_object("objects", one)
    assert (found.id, found.data) == (one, b'{"n": 1}')
    raises(kvstore.InvalidArgument, "", lambda: store.create_object("objects", "[1]"))

    written = store.update_object("objects", one, '{"a": true}', expected_timestamp=found.timestamp)
    assert written.data == b'{"a":true,"n":1}' and written.timestamp > found.timestamp
    late = lambda: store.update_object("objects", one, "{}", expected_timestamp=found.timestamp)
    raises(kvstore.FailedPrecondition, "timestamp", late)
    written = store.update_object("objects", one, data='{"whole": 1}', expected_timestamp=written.timestamp)
    assert store.get_object("objects", one) == written
    calls = []

    def transform(text):
        calls.append(text)
        if len(calls) == 1:  # Somebody else is faster.
            others.update_object("objects", one, '{"whole": 5}')
        return text.replace(b"1", b"2").replace(b"5", b"6")

    assert store.transform_object("objects", one, transform).data == b'{"whole":6}' and len(calls) == 2
    late = lambda: store.transform_object("objects", one, transform, expected_timestamp=1)
    raises(kvstore.FailedPrecondition, "expected_timestamp", late)

    # Soft, and hard.
    store.delete_object("objects", two)
    raises(kvstore.NotFound, "", lambda: store.get_object("objects", two))
    assert b'"active":false' in store.get_object("objects", two, include_inactive=True).data
    none = one + 1000
    assert store.get_objects("objects", [one, two, none, one])[1:3] == [None, None]
    assert store.get_objects("objects", [two], include_inactive=True)[0].id == two
    store.delete_object("objects", two, hard=True)
    assert store.get_objects("objects", [two], include_inactive=True) == [None]
    raises(kvstore.NotFound, "", lambda: store.delete_object("objects", two))
    # Not "there is none": another dataset's type, no ID.
    wrong = one ^ 1 << 36
    results = store.get_objects("objects", [one, wrong, 1 << 63], return_exceptions=True)
    assert results[0].id == one and [one.code for one in results[1:]] == ["INVALID_ARGUMENT"] * 2, results
    text = "1 of 2 entries failed; the first of them, entry 1: INVALID_ARGUMENT"
    raises(kvstore.BatchError, text, lambda: store.get_objects("objects", [one, wrong]))


def test_mappings(store):
    store.create_dataset("boards", "mappings")
    board = store.create_object("objects", '{"board": 1}')
    pins = [store.create_object("objects", '{"n": %d}' % n, near=board) for n in range(7)]
    for sequence, pin in enumerate(pins):
        store.add_mapping("boards", board, pin, sequence)
    assert [tuple(entry) for entry in store.list_mapping("boards", board)] == [(pin, n) for n, pin in enumerate(pins)]
    assert [entry.to for entry in store.list_mapping("boards", board, descending=True)] == pins[::-1]
    page = store.list_mapping_page("boards", board, limit=3)
    assert [entry.sequence for entry in page.entries] == [0, 1, 2] and page.marker
    page = store.list_mapping_page("boards", board, limit=10, marker=page.marker)
    assert [entry.sequence for entry in page.entries] == [3, 4, 5, 6] and not page.marker
    assert [entry.sequence for entry in store.list_mapping_page("boards", board, offset=5).entries] == [5, 6]
    assert store.count_mapping("boards", board) == 7

    store.delete_object("objects", pins[2])
    joined = list(store.list_objects("boards", board))
    assert [one.to for one in joined] == pins and joined[2].object is None
    assert joined[3].object.data == b'{"n": 3}' and joined[3].sequence == 3
    page = store.list_objects_page("boards", board, limit=2)
    assert [one.object.id for one in page.entries] == pins[:2] and page.marker
    page = store.list_objects_page("boards", board, max_bytes=1)
    assert len(page.entries) == 1 and page.marker

    assert store.remove_mapping("boards", board, pins[0]) and not store.remove_mapping("boards", board, pins[0])
    assert store.count_mapping("boards", board) == 6
    store.add_mapping("boards", board, pins[0])
    assert list(store.list_mapping("boards", board))[-1].sequence > 1_600_000_000_000


def test_id_scans(store):
    store.create_dataset("scanned", "objects")
    made = sorted(store.create_object("scanned", '{"n": %d}' % n, shard=n % 3) for n in range(20))
    assert [one.id for one in store.scan_objects("scanned")] == made
    assert next(store.scan_objects("scanned")) == store.get_object("scanned", made[0])
    assert [one.id for one in store.scan_objects("scanned", made[2], made[9])] == made[2:9]
    page = store.scan_objects_page("scanned", limit=7)
    assert [one.id for one in page.objects] == made[:7] and page.marker
    store.delete_object("scanned", made[8])
    store.delete_object("scanned", made[9], hard=True)
    assert [one.id for one in store.scan_objects("scanned", marker=page.marker)] == made[7:8] + made[10:]
    page = store.scan_objects_page("scanned", marker=page.marker, include_inactive=True)
    assert [one.id for one in page.objects] == made[7:9] + made[10:] and not page.marker
    assert len(store.scan_objects_page("scanned", max_bytes=1).objects) == 1
    parts = store.list_id_partitions("scanned", 4)
    assert parts[0].start_id == 0 and parts[-1].end_id == 1 << 62, parts
    found = [one.id for part in parts for one in store.scan_objects("scanned", part.start_id, part.end_id)]
    assert found == made[:8] + made[10:]

    store.create_dataset("links", "mappings")
    links = [(source, target, 9 - target) for source in made[:3] for target in (1, 2)]
    for source, target, sequence in links:
        store.add_mapping("links", source, target, sequence)
    assert [tuple(entry) for entry in store.scan_mappings("links")] == links
    assert [tuple(entry) for entry in store.scan_mappings("links", made[1], made[2])] == links[2:4]
    page = store.scan_mappings_page("links", limit=3)
    assert [tuple(entry) for entry in page.entries] == links[:3] and page.marker
    assert [tuple(entry) for entry in store.scan_mappings("links", marker=page.marker)] == links[3:]

    raises(kvstore.InvalidArgument, "start_id: 2 is not before", lambda: store.scan_objects_page("scanned", 2, 2))
    raises(kvstore.InvalidArgument, "end_id", lambda: store.scan_objects_page("scanned", 0, (1 << 62) + 1))
    raises(kvstore.InvalidArgument, "limit", lambda: store.scan_mappings_page("links", limit=0))
    raises(kvstore.InvalidArgument, "marker", lambda: store.scan_mappings_page("links", marker="x"))
    raises(kvstore.FailedPrecondition, "mappings", lambda: next(store.scan_objects("links")))


def test_deadlines(store):
    raises(kvstore.DeadlineExceeded, "", lambda: slowly(store.scan_rows("scans", timeout_s=0.1)))
    with connect("127.0.0.1:1", timeout_s=1) as nobody:
        for call in (
            lambda: nobody.get_row("d", "r"),
            lambda: nobody.get_rows("d", ["r"]),
            lambda: nobody.get_objects("d", [1]),
            lambda: nobody.list_objects_page("d", 1),
            lambda: next(nobody.scan_rows("d", timeout_s=1)),
            lambda: nobody.put_row("d", "r", {"c": "v"}, timeout_s=1),
        ):
            error = raises(kvstore.Unavailable, "server 127.0.0.1:1: ", call)
            # The client could not identify the server, so it wrote nothing.
            assert not error.in_doubt, error
    raises(kvstore.InvalidArgument, "the client is closed", lambda: nobody.get_row("d", "r"))


def main(address):
    # Not of the same kind: a call of an asyncio client cannot wait for another one in the middle.
    with connect(address) as store, kvstore.Client(address) as others:
        for name, test in list(globals().items()):
            if name == "test_objects":
                test(store, others)
            elif name.startswith("test_"):
                test(store)


if __name__ == "__main__":
    main(sys.argv[1])
