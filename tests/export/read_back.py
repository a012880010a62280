#!/usr/bin/env python3
"""Reads an export as Parquet by PyArrow and by DuckDB: read_back.py FOLDER LINES

FOLDER is that of the export, with its manifest.json. LINES has the same dataset as kv export wrote it as JSON lines. All
rows must be equal, in both readers, and the files must have nothing that readers choke on."""
import base64
import hashlib
import json
import pathlib
import sys

import duckdb
import pyarrow.parquet

ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY"}


def to_bytes(value):
    """The bytes that a JSON value of kv stands for."""
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def check(condition, problem):
    if not condition:
        sys.exit(f"read_back: {problem}")


def rows_of_lines(path, form, names):
    """The rows that the table must have, in any order."""
    rows = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        if "marker" in one:
            continue
        if form == "long":
            rows += [(to_bytes(one["row"]), to_bytes(item["column"]), cell["timestamp"], to_bytes(cell["value"]))
                     for item in one["items"] for cell in item["cells"]]
        elif form == "wide":
            newest = {item["column"]: item["cells"][0]["value"] for item in one["items"] if isinstance(item["column"], str)}
            if any(name in newest for name in names[1:]):
                rows.append((to_bytes(one["row"]), *(newest.get(name) for name in names[1:])))
        elif form == "objects":
            rows.append((int(one["id"]), one["data"]))
        else:
            rows.append((int(one["from"]), int(one["to"]), one["sequence"]))
    return sorted(rows, key=repr)


def comparable(form, names, rows):
    """Rows as a reader gives them, in the form of rows_of_lines."""
    made = []
    for row in rows:
        if form == "objects":
            values = dict(zip(names, row))
            check(values["local_id"] == values["id"] & (1 << 36) - 1, "a local_id is not that of the ID")
            check(values["type"] == values["id"] >> 36 & 1023, "a type is not that of the ID")
            check(values["shard"] == values["id"] >> 46, "a shard is not that of the ID")
            made.append((values["id"], json.loads(values["data"])))
        else:
            made.append(tuple(value.encode() if i == 0 and isinstance(value, str) else
                              value.decode() if form == "wide" and i > 0 and isinstance(value, bytes) else
                              value if form == "mappings" or form == "long" or value is None or i == 0 else str(value)
                              for i, value in enumerate(row)))
    return sorted(made, key=repr)


def check_file(path, described):
    check(path.stat().st_size == described["size"], f"{path} has another size than the manifest says")
    check(hashlib.sha256(path.read_bytes()).hexdigest() == described["checksum"], f"{path} has another checksum")
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    check(metadata.num_rows == described["rows"], f"{path} has another number of rows than the manifest says")
    check(metadata.num_row_groups == described["row_groups"], f"{path} has another number of row groups")
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            column = metadata.row_group(group).column(i)
            check(set(column.encodings) <= ENCODINGS, f"{path}: encodings {column.encodings}")
            check(column.compression == "ZSTD", f"{path}: compression {column.compression}")
            check(not column.has_offset_index, f"{path}: there is a page index")
            if column.physical_type == "BYTE_ARRAY":
                check(not column.is_stats_set, f"{path}: {column.path_in_schema} has bounds of bytes")


def main():
    folder, lines = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    manifest = json.loads((folder / "manifest.json").read_text())
    form, names = manifest["form"], [column["name"] for column in manifest["columns"]]
    for described in manifest["files"]:
        check_file(folder / described["path"], described)
    files = sorted(str(path) for path in (folder / manifest["data"]).iterdir())
    check(files == sorted(str(folder / file["path"]) for file in manifest["files"]), "the folder has other files")
    expected = rows_of_lines(lines, form, names)

    table = pyarrow.concat_tables(pyarrow.parquet.read_table(file) for file in files)
    check(table.column_names == names, f"PyArrow reads columns {table.column_names}")
    for name, field in zip(names, table.schema):
        if name == "timestamp":
            check(str(field.type) == "timestamp[ms, tz=UTC]", f"timestamps are {field.type}")
    columns = [column.cast("int64") if str(column.type).startswith("timestamp") else column for column in table.columns]
    by_arrow = list(zip(*(column.to_pylist() for column in columns)))
    check(comparable(form, names, by_arrow) == expected, "PyArrow reads other rows than kv export wrote")

    selected = ", ".join('epoch_ms("timestamp")' if name == "timestamp" else f'"{name}"' for name in names)
    by_duckdb = duckdb.sql(f"select {selected} from read_parquet({files})").fetchall()
    check(comparable(form, names, by_duckdb) == expected, "DuckDB reads other rows than kv export wrote")
    print(f"{len(expected)} rows are the same")


main()
