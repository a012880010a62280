"""Both Python clients behind one interface, so that a test is written once. `connect` makes the client that
KV_TEST_CLIENT names: "blocking" is kvstore.Client, "asyncio" is kvstore.aio.Client, of which each call is awaited."""

import asyncio
import atexit
import gc
import inspect
import os
import threading

import kvstore
import kvstore.aio

_END = object()


class _Loop:
    """An event loop in a thread of its own. An exception that nothing in it handles fails the program."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._note)
        self._unnoticed = []
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        atexit.register(self._check)

    def wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _note(self, loop, context):
        self._unnoticed.append(context)

    async def _rest(self):
        gc.collect()
        await asyncio.sleep(0)

    def _check(self):
        self.wait(self._rest())
        if self._unnoticed:
            print("in the event loop:", self._unnoticed)
            os._exit(1)


class _Waiting:
    """Calls of asyncio, each of which is awaited."""

    loop = None

    def __init__(self, calls):
        self._calls = calls

    def __getattr__(self, name):
        method = getattr(self._calls, name)

        def call(*arguments, **options):
            given = method(*arguments, **options)
            if inspect.isasyncgen(given):
                return self._items(given)
            if isinstance(given, kvstore.aio.Reports):
                return _Waiting(given)
            return self.loop.wait(given)

        return call

    def _items(self, given):
        async def following():
            return await anext(given, _END)

        try:
            while (item := self.loop.wait(following())) is not _END:
                yield item
        finally:
            self.loop.wait(given.aclose())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _connect(*arguments, **options):
    _Waiting.loop = _Waiting.loop or _Loop()

    async def make():
        return kvstore.aio.Client(*arguments, **options)

    return _Waiting(_Waiting.loop.wait(make()))


connect = {"blocking": kvstore.Client, "asyncio": _connect}[os.environ["KV_TEST_CLIENT"]]
