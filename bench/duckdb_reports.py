#!/usr/bin/env python3
"""DuckDB's side of `kv bench reports --peers duckdb`: duckdb_reports.py FOLDER THREADS

Answers each line of standard input, a JSON object, with a line of JSON: {"ok": true, ...} or {"ok": false, "error"}.
Each table is a database file of its own in FOLDER. Requests:

  {"op": "about"}                          -> version
  {"op": "load", "table", "csv"}           -> rows, seconds, bytes (of the database's file), parquet_bytes
  {"op": "query", "table", "metric", "from", "days", "daily", "countries"?, "group_by"}
                                           -> rows (segments, time in ms, sum), ms
  {"op": "drop", "table"}

The table is as DuckDB likes it best: sorted by metric, segments and time, so that zone maps find a metric, with the time
as a DATE. Times are those of DuckDB alone: results are fetched as Arrow tables, and made into Python's objects later."""
import json
import pathlib
import sys
import time

import duckdb

COLUMNS = "{'metric': 'VARCHAR', 'time': 'DATE', 'country': 'VARCHAR', 'app': 'VARCHAR', 'gender': 'VARCHAR', 'value': 'BIGINT'}"


class Tables:
    def __init__(self, folder, threads):
        self.folder = pathlib.Path(folder)
        self.threads = int(threads)
        self.connections = {}

    def file(self, table):
        return self.folder / f"{table}.duckdb"

    def about(self):
        return {"version": duckdb.__version__}

    def load(self, table, csv):
        connection = duckdb.connect(str(self.file(table)), config={"threads": self.threads})
        self.connections[table] = connection
        begin = time.perf_counter()
        connection.execute(f"CREATE TABLE points AS SELECT * FROM read_csv(?, header = true, columns = {COLUMNS}) "
                           "ORDER BY metric, country, app, gender, time", [csv])
        connection.execute("CHECKPOINT")
        seconds = time.perf_counter() - begin
        parquet = self.folder / f"{table}.parquet"
        connection.execute(f"COPY points TO '{parquet}' (FORMAT parquet, COMPRESSION zstd)")
        parquet_bytes = parquet.stat().st_size
        parquet.unlink()
        return {"rows": connection.execute("SELECT count(*) FROM points").fetchall()[0][0], "seconds": seconds,
                "bytes": self.file(table).stat().st_size, "parquet_bytes": parquet_bytes}

    def query(self, table, metric, days, daily, group_by, countries=None, **other):
        begin_day = other["from"]
        when = "epoch_ms(time::TIMESTAMP)" if daily else "epoch_ms(?::TIMESTAMP)"
        # The first question mark is the one of the whole range.
        values = ([] if daily else [begin_day]) + [metric, begin_day, begin_day, days]
        chosen = ""
        if countries is not None:
            chosen = f" AND country IN ({', '.join('?' * len(countries))})"
            values += countries
        groups = group_by + (["time"] if daily else [])
        sql = (f"SELECT {', '.join(group_by + [when, 'sum(value)::BIGINT'])} FROM points WHERE metric = ? "
               f"AND time >= ?::DATE AND time < ?::DATE + ?::INTEGER{chosen}"
               + (f" GROUP BY {', '.join(groups)}" if groups else ""))
        begin = time.perf_counter()
        result = self.connections[table].sql(sql, params=values).to_arrow_table()
        ms = (time.perf_counter() - begin) * 1000
        return {"rows": list(zip(*(column.to_pylist() for column in result.columns))), "ms": ms}

    def drop(self, table):
        self.connections.pop(table).close()
        self.file(table).unlink()
        return {}


def main():
    tables = Tables(*sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("op")
        try:
            answer = {"ok": True, **getattr(tables, operation)(**request)}
        except Exception as error:  # The bench is told, whatever it was.
            answer = {"ok": False, "error": f"{operation}: {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
