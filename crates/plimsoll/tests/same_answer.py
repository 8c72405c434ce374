"""The figures of a profile, worked out by DuckDB from the ledger's Parquet files. Prints one JSON object."""

import json
import sys

import duckdb

files, tenant = sys.argv[1], sys.argv[2]
db = duckdb.connect()
db.execute("SET threads = 1")
where = "TRUE" if tenant == "*" else "tenant = '" + tenant + "'"
db.execute(
    f"""
    CREATE TABLE whole AS SELECT epoch_ns(ts_arrival) AS ns, prompt_tokens::DOUBLE AS prompt,
      output_tokens::DOUBLE AS output, cache_read_tokens::DOUBLE AS cached, tenant
    FROM read_parquet('{files}')
    """
)
t0, last = db.execute("SELECT min(ns), max(ns) FROM whole").fetchone()
db.execute(f"CREATE TABLE rows AS SELECT * FROM whole WHERE {where}")


def one(sql):
    names = [d[0] for d in db.execute(sql).description]
    return dict(zip(names, db.fetchone()))


def levels(value, table):
    return one(
        f"""
        SELECT avg({value}) AS mean, stddev_pop({value}) AS std, quantile_cont({value}, 0.5) AS p50,
          quantile_cont({value}, 0.95) AS p95, quantile_cont({value}, 0.99) AS p99, max({value}) AS max
        FROM {table}
        """
    )


def windows(seconds):
    complete = (last - t0) // (seconds * 10**9)
    if complete < 2:
        return None
    db.execute(
        f"""
        CREATE OR REPLACE TABLE sums AS
        WITH own AS (
          SELECT (ns - {t0}) // {seconds * 10**9} AS w, count(*) AS n, sum(prompt) AS p, sum(output) AS o,
            sum(prompt - cached) AS f FROM rows GROUP BY w)
        SELECT coalesce(n, 0)::DOUBLE AS n, coalesce(p, 0)::DOUBLE AS p, coalesce(o, 0)::DOUBLE AS o,
          coalesce(f, 0)::DOUBLE AS f
        FROM range({complete}) AS g(i) LEFT JOIN own ON own.w = g.i
        """
    )
    found = {"requests": levels("n", "sums"), "prompt_tokens": levels("p", "sums"), "output_tokens": levels("o", "sums")}
    if db.execute("SELECT count(*) FROM rows WHERE cached IS NULL").fetchone()[0] == 0:
        found["fresh_tokens"] = levels("f", "sums")
    found["n_windows"] = complete
    return found


def lengths(column):
    found = levels(column, f"rows WHERE {column} IS NOT NULL")
    found |= one(
        f"""
        SELECT count({column})::DOUBLE AS n, sum({column}) AS sum, min({column}) AS min,
          sum({column} * {column}) / nullif(sum({column}), 0) AS size_biased_mean
        FROM rows WHERE {column} IS NOT NULL
        """
    )
    return found


db.execute("CREATE TABLE gaps AS SELECT (ns - lag(ns) OVER (ORDER BY ns)) / 1e9 AS gap FROM rows")
print(
    json.dumps(
        {
            "rows": db.execute("SELECT count(*) FROM rows").fetchone()[0],
            "windows": {str(w): windows(w) for w in (1, 10, 60, 300, 3600)},
            "prompt": lengths("prompt"),
            "output": lengths("output"),
            "inter_arrival": levels("gap", "gaps WHERE gap IS NOT NULL"),
            "pearson": db.execute("SELECT corr(prompt, output) FROM rows").fetchone()[0],
        }
    )
)
