#!/usr/bin/env python3
"""Asks another program about an export of rows as Parquet: ask_parquet.py duckdb|spark FOLDER

FOLDER has the files, and nothing else; row keys are strings. Prints how many cells and rows there are, and how many cells
user:00007 has."""
import sys

USER = "user:00007"


def ask_duckdb(folder):
    import duckdb
    # fetchall: a relation of later versions has no fetchone.
    return duckdb.sql(f"""select count(*), count(distinct row), count(*) filter (where row = '{USER}')
                          from read_parquet('{folder}/*.parquet')""").fetchall()[0]


def ask_spark(folder):
    from pyspark.sql import SparkSession, functions
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    cells = spark.read.parquet(folder)
    one = cells.agg(functions.count("*"), functions.count_distinct("row"),
                    functions.count(functions.when(functions.col("row") == USER, 1))).collect()[0]
    spark.stop()
    return tuple(one)


cells, rows, of_user = {"duckdb": ask_duckdb, "spark": ask_spark}[sys.argv[1]](sys.argv[2])
print(f"cells: {cells}, rows: {rows}, cells of {USER}: {of_user}")
