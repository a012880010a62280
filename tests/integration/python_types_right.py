"""Every call of both Python clients, for a type checker: mypy --strict must report nothing. This file is not run."""

import datetime
from collections.abc import AsyncGenerator, Generator
from typing import assert_type

import kvstore
import kvstore.aio
from kvstore import Condition, Expression, Filter, Metric, Point, Rollup, RowDelete, RowRead, RowWrite, SegmentKey, Top


def blocking(store: kvstore.Client, board: int) -> None:
    store.create_dataset("events", max_versions=50, ttl_ms=1000, durability="machine", timeout_s=5)
    store.alter_dataset("events", max_versions=3)
    assert_type(store.get_dataset("events"), kvstore.Dataset)
    assert_type(store.list_datasets()[0].ttl_ms, int)
    assert_type(store.get_stats("events").approximate_bytes, int)
    changes = store.read_changes("events", "begin", limit=3).changes
    store.set_consumer("events", "search", b"token")
    assert_type(store.list_consumers("events")[0], kvstore.Consumer)
    store.drop_consumer("events", "search")
    for told in store.changes("events", "now", timeout_s=1.5):
        assert_type(told, kvstore.ChangePage)
    assert_type(changes[0].what, kvstore.RowChange | kvstore.ObjectChange | kvstore.MappingChange)
    assert_type(store.read_changes("events", b"token").token, bytes)
    assert_type(store.get_metrics(), str)
    assert_type(store.compact("events", lambda done, total: done < total), kvstore.Compaction)

    values = {"click": "pin:3"}
    assert_type(store.put_row("events", "user:7", values), int | None)
    store.put_row("events", b"user:7", {b"click": b"pin:3"}, 17, condition=Condition("click"), sync=True)
    store.put_row("events", "user:7", [kvstore.CellWrite("c", b"v", 5), ("d", "w"), ("e", b"x", None)])
    assert_type(store.get_row("events", "user:7", ["click", b"view"], versions=2), kvstore.Row)
    for column, cells in store.get_row("events", "user:7", {"click"}).items():
        assert_type(column, bytes)
        assert_type(cells, list[kvstore.Cell])
    page = store.get_row_page("events", "user:7", values.keys(), limit=3)
    store.get_row_page("events", "user:7", marker=page.marker)
    store.get_row_page("events", "user:7", after_column=b"click")
    store.get_row("events", "user:7", after_column="click")
    store.iter_row("events", "user:7", after_column="click").close()
    assert_type(store.iter_row("events", "r"), Generator[tuple[bytes, list[kvstore.Cell]], None, None])
    store.delete_row("events", "user:7", ["click"])
    store.delete_row("events", "user:7", cells=[("click", 5), kvstore.CellName("view", 6)])

    assert_type(store.get_rows("events", ["r", RowRead("s", versions=2)]), list[kvstore.Row])
    assert_type(store.get_rows("events", ["r"], return_exceptions=True), list[kvstore.Row | kvstore.Error])
    assert_type(store.put_rows("events", (RowWrite(row, values) for row in "abc")), list[int | None])
    assert_type(store.put_rows("events", [], return_exceptions=True), list[int | None | kvstore.Error])
    assert_type(store.delete_rows("events", [b"r", RowDelete("s", ["c"])]), list[None])
    assert_type(store.delete_rows("events", ["r"], return_exceptions=True), list[kvstore.Error | None])

    assert_type(store.scan_rows("events"), Generator[tuple[bytes, kvstore.Row], None, None])
    assert_type(store.scan_page("events", limit=3).rows, list[tuple[bytes, kvstore.Row]])
    for part in store.list_partitions("events", 8):
        store.scan_rows("events", part.start, part.end, shard=part.shard).close()

    pin = store.create_object("pins", '{"title": "a chair"}', near=board)
    found = store.get_object("pins", pin)
    assert_type(found.data, bytes)
    assert_type(store.get_objects("pins", {pin}), list[kvstore.Object | None])
    everything = store.get_objects("pins", [pin], return_exceptions=True)
    assert_type(everything, list[kvstore.Object | None | kvstore.Error])
    assert_type(store.update_object("pins", pin, '{"a": 1}'), kvstore.Object)
    store.update_object("pins", pin, data="{}", expected_timestamp=found.timestamp)
    assert_type(store.transform_object("pins", pin, lambda text: text.upper()), kvstore.Object)
    store.delete_object("pins", pin, hard=True)

    store.add_mapping("boards", board, pin)
    assert_type(store.remove_mapping("boards", board, pin), bool)
    assert_type(store.count_mapping("boards", board), int)
    assert_type(store.list_mapping_page("boards", board).entries, list[kvstore.MappingEntry])
    assert_type(store.list_mapping("boards", board), Generator[kvstore.MappingEntry, None, None])
    assert_type(store.list_objects_page("boards", board).entries[0].object, kvstore.Object | kvstore.Error | None)
    assert_type(store.list_objects("boards", board), Generator[kvstore.JoinedObject, None, None])

    for ids in store.list_id_partitions("pins", 8):
        scan = store.scan_objects("pins", ids.start_id, ids.end_id, include_inactive=True)
        assert_type(scan, Generator[kvstore.Object, None, None])
    objects = store.scan_objects_page("pins", limit=3, max_bytes=1 << 20)
    assert_type(objects, kvstore.ObjectPage)
    store.scan_objects("pins", marker=objects.marker).close()
    assert_type(store.scan_mappings("boards", 1, 5), Generator[kvstore.ScannedMapping, None, None])
    assert_type(store.scan_mappings_page("boards", limit=3).entries, list[kvstore.ScannedMapping])
    store.drop_dataset("events", incarnation=5)


def on_reports(store: kvstore.Client) -> None:
    reports = store.reports()
    assert_type(reports, kvstore.Reports)
    reports.create("flights", ["carrier", SegmentKey("origin", "?")], {"departures"}, resolution="1h", retention=0)
    reports.create("flights", metrics=["late", Metric("delay", "distribution")], period=datetime.timedelta(days=30))
    reports.alter("flights", add_segment_key=SegmentKey("dest", "?"), rollups=[Rollup(["carrier"], "1d")])
    assert_type(reports.list(), list[str])
    assert_type(reports.info("flights", ["departures"]).metrics, list[Metric])
    assert_type(reports.describe("flights").segment_values, dict[str, list[str]])
    assert_type(reports.list_metrics("flights", "dep", after="departures", limit=10), kvstore.MetricPage)
    now = datetime.datetime.now(datetime.timezone.utc)
    points = [
        Point("departures", now, {"carrier": "UA"}, 3),
        Point("departures", "2013-01-01T05:00:00Z", {}, 2.5),
        Point("delay", now.date(), {}, [4, -2.5]),
        Point("planes", 0, {}, {"N14228"}),
        Point("planes", 0, {}, [b"N14228", b"N24211"]),
    ]
    assert_type(reports.write("flights", points, batch="b"), int)
    reports.write("flights", (Point("departures", hour * 3_600_000, {}, hour) for hour in range(24)), add=True)
    found = reports.query(
        "flights",
        ["departures", Expression("rate", "late / departures")],
        "2013-01-01",
        now,
        step="1d",
        filters=[Filter({"carrier": ["UA"], "origin": "*"}, "united")],
        group_by=["origin"],
        top=Top(5, "sum"),
        compare_to="-7d",
    )
    assert_type(found, kvstore.QueryResult)
    assert_type(found.series[0].points, list[tuple[int, float]])
    assert_type(found.cost.bytes, int)
    found.to_pandas().to_csv("flights.csv")
    assert_type(reports.delete("flights", ["departures"], 0, now), int)
    assert_type(reports.compact("flights"), kvstore.ReportCompaction)
    assert_type(reports.make_rollups("flights").rows_written, int)
    store.reports("others").drop("flights")
    reports.drop("flights")


def main() -> None:
    with kvstore.Client("127.0.0.1:7400", token="kv_secret", plain_token=True, timeout_s=3) as store:
        assert_type(store, kvstore.Client)
        try:
            blocking(store, 7)
            on_reports(store)
        except kvstore.BatchError as error:
            assert_type(error.in_doubt, bool)
            assert_type(error.code, str)
            print(error.results)
        store.stub.GetServer(kvstore.messages.GetServerRequest(), metadata=store.metadata)
        store.close()


async def on_a_loop(store: kvstore.aio.Client, board: int) -> None:
    await store.create_dataset("events", max_versions=50)
    await store.alter_dataset("events", max_versions=3)
    assert_type(await store.get_dataset("events"), kvstore.Dataset)
    assert_type(await store.list_datasets(), list[kvstore.Dataset])
    assert_type(await store.get_stats("events"), kvstore.Stats)
    assert_type(await store.get_metrics(), str)
    assert_type(await store.compact("events"), kvstore.Compaction)
    async for told in store.changes("events", "now", timeout_s=1.5):
        assert_type(told, kvstore.ChangePage)
    await store.set_consumer("events", "search", "now")
    assert_type(await store.list_consumers("events"), list[kvstore.Consumer])
    await store.drop_consumer("events", "search")

    assert_type(await store.put_row("events", "user:7", {"click": "pin:3"}), int | None)
    assert_type(await store.get_row("events", "user:7"), kvstore.Row)
    assert_type(await store.get_row_page("events", "user:7"), kvstore.Row)
    assert_type(store.iter_row("events", "r"), AsyncGenerator[tuple[bytes, list[kvstore.Cell]], None])
    await store.delete_row("events", "user:7")

    assert_type(await store.get_rows("events", ["r"]), list[kvstore.Row])
    assert_type(await store.get_rows("events", ["r"], return_exceptions=True), list[kvstore.Row | kvstore.Error])
    assert_type(await store.put_rows("events", [RowWrite("r", {"c": "v"})]), list[int | None])
    assert_type(await store.delete_rows("events", ["r"]), list[None])

    async for key, row in store.scan_rows("events"):
        assert_type(key, bytes)
        assert_type(row, kvstore.Row)
    assert_type(await store.scan_page("events"), kvstore.ScanPage)
    assert_type(await store.list_partitions("events", 8), list[kvstore.Partition])

    pin = await store.create_object("pins", "{}", near=board)
    assert_type(await store.get_object("pins", pin), kvstore.Object)
    assert_type(await store.get_objects("pins", [pin]), list[kvstore.Object | None])
    assert_type(await store.update_object("pins", pin, "{}"), kvstore.Object)
    assert_type(await store.transform_object("pins", pin, lambda text: text), kvstore.Object)
    await store.delete_object("pins", pin)

    await store.add_mapping("boards", board, pin)
    assert_type(await store.remove_mapping("boards", board, pin), bool)
    assert_type(await store.count_mapping("boards", board), int)
    assert_type(await store.list_mapping_page("boards", board), kvstore.MappingPage)
    assert_type([one.to async for one in store.list_mapping("boards", board)], list[int])
    assert_type(await store.list_objects_page("boards", board), kvstore.JoinedPage)
    assert_type([one.sequence async for one in store.list_objects("boards", board)], list[int])

    assert_type(await store.list_id_partitions("pins", 8), list[kvstore.IdPartition])
    assert_type([one.id async for one in store.scan_objects("pins")], list[int])
    assert_type(await store.scan_objects_page("pins"), kvstore.ObjectPage)
    assert_type([one.source async for one in store.scan_mappings("boards")], list[int])
    assert_type(await store.scan_mappings_page("boards"), kvstore.ScannedMappingPage)
    await store.drop_dataset("events")


async def on_reports_of_a_loop(store: kvstore.aio.Client) -> None:
    reports = store.reports("others")
    assert_type(reports, kvstore.aio.Reports)
    await reports.create("flights", ["carrier"], ["departures"])
    await reports.alter("flights", retention="30d")
    assert_type(await reports.list(), list[str])
    assert_type(await reports.info("flights"), kvstore.Report)
    assert_type(await reports.describe("flights"), kvstore.Report)
    assert_type((await reports.list_metrics("flights")).metrics, list[Metric])
    assert_type(await reports.write("flights", [Point("departures", 0, {"carrier": "UA"}, 1)]), int)
    assert_type(await reports.query("flights", ["departures"], 0, 1000), kvstore.QueryResult)
    assert_type(await reports.delete("flights", ["departures"], 0, 1000), int)
    assert_type(await reports.compact("flights"), kvstore.ReportCompaction)
    assert_type(await reports.make_rollups("flights"), kvstore.RollupsMade)
    await reports.drop("flights")


async def amain() -> None:
    async with kvstore.aio.Client("127.0.0.1:7400", ca="/etc/ssl/certs/ca-certificates.crt") as store:
        assert_type(store, kvstore.aio.Client)
        await on_a_loop(store, 7)
        await on_reports_of_a_loop(store)
        await store.close()
