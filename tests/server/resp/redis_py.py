"""What programs that use redis-py do: redis_py.py PORT PROTOCOL

The server has the datasets "rows", which keeps all versions, "docs" and "links". Rows are named after the protocol, so
that the program can run once with each."""
import sys

import redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])


def refused(kind, call, *args, **kwargs):
    """The message of the error with which a call must fail."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")


def hashes(r, row):
    assert r.hset(row, mapping={"a": "1", "b": "2"}) == 2
    assert r.hset(row, "a", "3") == 0
    assert r.hgetall(row) == {"a": "3", "b": "2"}
    assert r.hmget(row, ["b", "none"]) == ["2", None]
    assert r.hincrby(row, "n", 5) == 5
    assert dict(r.hscan_iter(row)) == {"a": "3", "b": "2", "n": "5"}
    assert r.hdel(row, "a", "none") == 1


def strings(r, row):
    assert r.set(row, "value") is True
    assert r.set(row, "other", nx=True) is None
    assert r.get(row) == "value"
    assert r.mget([row, row + "-none"]) == ["value", None]
    assert r.incr(row + "-n", 41) == 41
    assert r.exists(row, row + "-none") == 1
    assert r.type(row) == "string"
    assert "ttl-ms" in refused(redis.ResponseError, r.set, row, "v", ex=10)
    assert r.delete(row) == 1


def streams(r, row):
    key = row + ":clicks"
    ids = [r.xadd(key, {"v": f"event {i}"}) for i in range(100)]
    assert len(set(ids)) == 100
    assert [fields for _, fields in r.xrevrange(key, count=2)] == [{"v": "event 99"}, {"v": "event 98"}]
    assert r.xrange(key, min=ids[10], max=ids[11])[0] == (ids[10], {"v": "event 10"})
    assert r.xlen(key) == 100


def sorted_sets(r, key):
    assert r.zadd(key, {"100": 1.0, "200": 2, "300": 1_700_000_000_000}) == 3
    assert r.zrevrange(key, 0, 0) == ["300"]
    assert [tuple(pair) for pair in r.zrange(key, 0, -1, withscores=True)] == [
        ("100", 1.0), ("200", 2.0), ("300", 1_700_000_000_000.0)]
    assert r.zrangebyscore(key, 2, "+inf") == ["200", "300"]
    assert r.zscore(key, "200") == 2.0
    assert sorted(member for member, _ in r.zscan_iter(key)) == ["100", "200", "300"]
    assert r.zrem(key, "100") == 1
    assert r.zcard(key) == 2


def documents(r):
    key = "docs:" + r.execute_command("KV.CREATE", "docs", '{"title": "a chair"}')
    assert r.json().get(key) == {"title": "a chair"}
    assert r.json().set(key, "$", {"title": "a table"}) is True
    assert r.json().merge(key, "$", {"legs": 4}) is True
    assert r.json().get(key) == {"legs": 4, "title": "a table"}
    assert r.json().delete(key) == 1
    assert r.json().get(key) is None


def pipelines(r, row):
    pipe = r.pipeline(transaction=False)
    for i in range(1000):
        pipe.hset(row, f"f{i:04}", i)
        pipe.hget(row, f"f{i:04}")
    answers = pipe.execute()
    assert answers == [answer for i in range(1000) for answer in (1, str(i))]
    assert "is not supported" in refused(redis.ResponseError, r.pipeline(transaction=True).set(row, "v").execute)


def main():
    r = redis.Redis(port=PORT, protocol=PROTOCOL, decode_responses=True, client_name="tests")
    assert r.ping()
    assert r.client_getname() == "tests"
    assert r.info()["redis_mode"] == "standalone"
    row = f"rows:py{PROTOCOL}"
    hashes(r, row + "-hash")
    strings(r, row + "-string")
    streams(r, row + "-stream")
    sorted_sets(r, f"links:{PROTOCOL}")
    documents(r)
    pipelines(r, row + "-pipe")
    assert set(r.scan_iter(row + "*")) == {row + "-hash", row + "-pipe", row + "-stream", row + "-string-n"}
    assert "WRONGTYPE" in refused(redis.ResponseError, r.get, "docs:1")


main()
