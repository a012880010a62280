"""What only an asyncio client can meet: cancelled tasks, many tasks at once, and loops that are not its own."""

import asyncio
import gc
import inspect
from contextlib import aclosing

import grpc
import kvstore
import kvstore.aio
from kvstore import RowWrite
from python_faults import UNAVAILABLE, fails, serving


async def hanging(server):
    """Returns the event of a call that hangs. Waits for it in a thread, because the loop must go on."""
    return await asyncio.to_thread(server.hanging.get, timeout=60)


async def ends(ended):
    assert await asyncio.to_thread(ended.wait, 60), "it was not ended on the server"


async def cancelled(task):
    """Cancels a task, which must end as cancelled."""
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled(), task


async def test_many_tasks(store, server):
    async def read(n):
        if n % 10 == 0:
            return [key async for key, _ in store.scan_rows("d")]
        return [one.id for one in await store.get_objects("d", [n, n + 1])]

    # None of these is an ID that fails.
    numbers = range(1000, 1500)
    for n, found in zip(numbers, await asyncio.gather(*map(read, numbers))):
        assert found == ([b"r%d" % row for row in range(10)] if n % 10 == 0 else [n, n + 1]), (n, found)


async def test_cancelled(store, server):
    """A task that is cancelled ends its call on the server, whichever kind it is."""

    async def scan():
        return [row async for row in store.scan_rows("hang")]

    for call in (
        lambda: store.get_row("hang", "r"),
        lambda: store.put_row("hang", "r", {"c": "v"}),
        lambda: store.put_rows("hang", [RowWrite("r", {"c": "v"})] * 5000),
        lambda: store.scan_page("hang", limit=3),
        scan,
    ):
        task = asyncio.ensure_future(call())
        ended = await hanging(server)
        await cancelled(task)
        await ends(ended)
        assert server.hanging.empty(), "it was made again"
    # Before it is sent.
    task = asyncio.ensure_future(store.get_row("d", "r"))
    await cancelled(task)


async def test_cancelled_between_attempts(store, server):
    server.plan, server.seen = [(UNAVAILABLE, "refused")] * 1000, []
    task = asyncio.ensure_future(store.get_row("d", "r", timeout_s=60))
    while len(server.seen) < 3:
        await asyncio.sleep(0)
    await cancelled(task)
    server.plan = []
    assert await store.get_row("d", "r") == {}


async def test_timeout(store, server):
    """A deadline by asyncio.timeout ends the call on the server."""
    try:
        async with asyncio.timeout(0.1):
            await store.get_row("hang", "r")
        raise AssertionError("it went well")
    except TimeoutError:
        await ends(await hanging(server))


async def test_after_a_cancel(store, server):
    """A cancelled task that still writes something: a call that its server cancels is retried."""

    async def work():
        try:
            await store.get_row("hang", "r")
        except asyncio.CancelledError:
            server.plan = [(grpc.StatusCode.CANCELLED, None)]
            return await store.put_row("d", "r", {"c": "v"})

    task = asyncio.ensure_future(work())
    await hanging(server)
    server.seen = []
    task.cancel()
    assert await task == 7 and len(server.seen) == 2, server.seen


async def test_early_end(store, server):
    async with aclosing(store.scan_rows("hang")) as rows:
        await anext(rows)
        ended = await hanging(server)
    await ends(ended)
    # Dropped without being closed.
    rows = store.scan_rows("hang")
    await anext(rows)
    ended = await hanging(server)
    del rows
    gc.collect()
    await ends(ended)


async def test_close(store, server):
    """A task whose client is closed gets an error, and is not cancelled by that."""
    other = kvstore.aio.Client(server.address)
    reads = [asyncio.ensure_future(other.get_row("hang", "r")) for _ in range(3)]
    pausing = asyncio.ensure_future(other.get_objects("d", [1, 2]))
    for ended in [await hanging(server) for _ in reads]:
        assert not ended.is_set()
    await pausing
    await other.close()
    for read in reads:
        await asyncio.wait((read,))
        assert isinstance(read.exception(), kvstore.Unavailable) and not read.exception().in_doubt, read


def test_loops(address):
    """A client belongs to the loop that runs where it is made."""
    fails(kvstore.InvalidArgument, "no event loop runs here", lambda: kvstore.aio.Client(address))

    async def make():
        store = kvstore.aio.Client(address)
        assert await store.get_row("d", "r") == {}
        return store

    with asyncio.Runner() as first, asyncio.Runner() as second:
        store = first.run(make())
        text = "belongs to another event loop"
        fails(kvstore.InvalidArgument, text, lambda: second.run(store.get_row("d", "r")))
        fails(kvstore.InvalidArgument, text, lambda: second.run(anext(store.scan_rows("d"))))
        first.run(store.close())


def test_blocking_client_where_a_loop_runs(address):
    """A scan of kvstore.Client does not depend on a loop: it goes on after one has ended."""

    async def begin():
        rows = store.scan_rows("d")
        return next(rows), rows

    with kvstore.Client(address) as store:
        first, rows = asyncio.run(begin())
        assert [key for key, _ in (first, *rows)] == [b"r%d" % row for row in range(10)]


async def run(server):
    wrong = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
    async with kvstore.aio.Client(server.address, timeout_s=60) as store:
        for name, test in list(globals().items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                await test(store, server)
    gc.collect()
    await asyncio.sleep(0)
    assert not wrong, wrong


if __name__ == "__main__":
    with serving() as (faulty, address):
        faulty.address = address
        asyncio.run(run(faulty))
        test_loops(address)
        test_blocking_client_where_a_loop_runs(address)
    print("tasks may be cancelled")
