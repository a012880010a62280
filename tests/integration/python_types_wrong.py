"""Wrong uses, each of which mypy --strict must report with the text behind `# E:`. This file is not run."""

import kvstore
import kvstore.aio
from kvstore import Condition, Filter, Point, RowRead, RowWrite


def blocking(store: kvstore.Client) -> None:
    store.get_row("d", "r", versions="2")  # E: Argument "versions"
    store.get_row("d", "r", columns="click")  # E: Argument "columns"
    store.get_row("d", 7)  # E: Argument 2
    store.get_row("d", "r", limit=5)  # E: Unexpected keyword argument "limit"
    store.get_row("d", "r", timeout_s="5")  # E: Argument "timeout_s"
    store.get_row("d")  # E: Too few arguments
    store.put_row("d", "r", {"c": 3})  # E: Argument 3
    store.put_row("d", "r", "v")  # E: Argument 3
    store.put_row("d", "r", {"c": "v"}, condition={"c": None})  # E: Argument "condition"
    store.put_row("d", "r", {"c": "v"}) + 1  # E: Unsupported operand types
    store.get_rows("d", "r")  # E: No overload variant
    store.get_rows("d", ["r"], return_exceptions=True)[0].marker  # E: has no attribute "marker"
    store.put_rows("d", [{"c": "v"}])  # E: List item 0
    store.delete_rows("d", [7])  # E: List item 0
    store.get_objects("d", ["7"])  # E: List item 0
    store.get_objects("d", [7])[0].data  # E: has no attribute "data"
    store.get_object("d", "7")  # E: Argument 2
    store.create_object("d", {"a": 1})  # E: Argument 2
    store.transform_object("d", 7, lambda text: 7)  # E: Incompatible return value type
    store.create_dataset("d", ttl=3)  # E: Argument "ttl"
    store.alter_dataset("d", versions=3)  # E: Argument "versions"
    store.scan_rows("d")[0]  # E: is not indexable
    for key, row in store.scan_rows("d"):
        row["click"]  # E: Invalid index type
        key.encode()  # E: has no attribute "encode"
    store.list_mapping("d", 1, limit=5)  # E: Unexpected keyword argument "limit"
    store.find_row("d")  # E: has no attribute "find_row"
    kvstore.Client(7400)  # E: Argument 1
    RowRead("r", versions="2")  # E: Argument "versions"
    RowWrite("r", 3)  # E: Argument 2
    Condition("c", 3)  # E: Argument 2
    kvstore.messages.GetRowRequest(dataset=3)  # E: Argument "dataset"


def on_reports(reports: kvstore.Reports) -> None:
    reports.query("r", "clicks", 0, 1)  # E: Argument 2
    reports.query("r", ["clicks"], 0)  # E: Too few arguments
    reports.query("r", ["clicks"], 0.5, 1)  # E: Argument 3
    reports.query("r", ["clicks"], 0, 1, step=1.5)  # E: Argument "step"
    reports.query("r", ["clicks"], 0, 1, top=5)  # E: Argument "top"
    reports.query("r", ["clicks"], 0, 1, group_by="country")  # E: Argument "group_by"
    reports.query("r", ["clicks"], 0, 1).series[0].compared[0]  # E: is not indexable
    reports.write("r", [("clicks", 0)])  # E: List item 0
    reports.write("r", {"clicks": 1}, batch=5)  # E: Argument
    Point("clicks", 0, {"country": 5}, 1)  # E: Dict entry 0
    Point("clicks", 0, {}, "N14228")  # E: Argument 4
    Filter({"country": 5})  # E: Dict entry 0
    reports.create("r", metrics="clicks")  # E: Argument "metrics"
    for name in reports.list():
        name.decode()  # E: has no attribute "decode"


async def on_a_loop(store: kvstore.aio.Client) -> None:
    store.put_row("d", "r", {"c": "v"})  # E: must be used
    await store.get_row("d", "r", versions="2")  # E: Argument "versions"
    (await store.get_rows("d", ["r"], return_exceptions=True))[0].marker  # E: has no attribute "marker"
    for key, row in store.scan_rows("d"):  # E: has no attribute "__iter__"
        pass
    with kvstore.aio.Client("127.0.0.1:7400"):  # E: has no attribute
        pass
