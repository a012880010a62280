"""The wire of asyncio."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio

from kvstore._errors import InvalidArgument, closed
from kvstore._wire import finish, stub_of


class AsyncioWire:
    """A Wire (_wire.py) over a channel of grpc.aio, for all tasks of the event loop that runs when it is made.

    grpc.aio raises CancelledError for a call that close() ended, too, in a task that nobody cancelled. So nothing here
    takes one from it: what is awaited lets one through only if the task itself was cancelled, and then ends the call.
    """

    def __init__(self, open_channel: Callable[[Any], Any], metadata: list[tuple[str, str]]):
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidArgument("no event loop runs here; make the client in a coroutine") from None
        self._channel = open_channel(grpc.aio)
        self.stub = stub_of(self._channel)
        self._metadata = metadata
        # The calls that close() has to end: grpc.aio ends only those that somebody awaits.
        self.open: set[Any] = set()
        self._closing = self._loop.create_future()

    @property
    def closed(self) -> bool:
        return self._closing.done()

    async def call(self, method: str, request: Any, timeout: float, wait_for_ready: bool = False) -> Any:
        call = _Call(self, self._begin(method, request, timeout, wait_for_ready))
        try:
            return await call.only_answer()
        finally:
            call.cancel()

    def stream(self, method: str, request: Any, timeout: float | None) -> "_Call":
        if request is not None:
            return _Call(self, self._begin(method, request, timeout))
        to_send: asyncio.Queue[Any] = asyncio.Queue()
        return _Call(self, self._begin(method, _messages(to_send), timeout), to_send)

    async def sleep(self, seconds: float) -> None:
        await asyncio.wait((self._closing,), timeout=seconds)

    async def close(self) -> None:
        if not self.closed:
            self._closing.set_result(None)
        for call in tuple(self.open):
            call.cancel()
        await self._channel.close()

    def _begin(self, method: str, request: Any, timeout: float | None, wait_for_ready: bool = False) -> Any:
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidArgument("the client belongs to another event loop; make one in each")
        if self.closed:
            raise closed()
        return getattr(self.stub, method)(
            request, timeout=timeout, metadata=self._metadata, wait_for_ready=wait_for_ready
        )


class _Call:
    """A call of grpc.aio, and its outcome."""

    def __init__(self, wire: AsyncioWire, call: Any, to_send: "asyncio.Queue[Any] | None" = None):
        self._wire = wire
        self._call = call
        self._to_send = to_send
        self._ended: asyncio.Future[grpc.aio.AioRpcError | None] = asyncio.get_running_loop().create_future()
        wire.open.add(call)
        call.add_done_callback(self._end)

    async def only_answer(self) -> Any:
        await self._check()
        return _decoded(await self._call)

    async def read(self) -> Any:
        reading = asyncio.ensure_future(self._call.read())
        # Retrieves the exception, which nobody does if this task is cancelled.
        reading.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait((reading,))
        try:
            answer = grpc.aio.EOF if reading.cancelled() else reading.result()
        except grpc.RpcError:
            answer = grpc.aio.EOF
        if answer is grpc.aio.EOF:
            await self._check()
            return None
        return _decoded(answer)

    def send(self, message: Any) -> None:
        assert self._to_send is not None
        self._to_send.put_nowait(message)

    def cancel(self) -> None:
        if self._to_send is not None:
            self._to_send.put_nowait(None)
        self._call.cancel()

    def _end(self, call: Any) -> None:
        self._wire.open.discard(call)
        # The first outcome counts: from 1.59 on, gRPC replaces it when a message fails that the server did not read any
        # more (https://github.com/grpc/grpc/issues/36066).
        if not self._ended.done():
            self._ended.set_result(_error(call))

    async def _check(self) -> None:
        """Waits for the end of the call, and raises its error if it failed."""
        await asyncio.wait((self._ended,))
        error = self._ended.result()
        if error is not None:
            raise error


async def _messages(to_send: "asyncio.Queue[Any]") -> AsyncIterator[Any]:
    while (message := await to_send.get()) is not None:
        yield message


def _error(call: Any) -> Any:
    """Returns the exception that grpc.aio would raise for a call that has ended; None if it succeeded."""
    code = finish(call.code())
    if code is grpc.StatusCode.OK:
        return None
    details, trailing = finish(call.details()), finish(call.trailing_metadata())
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details, finish(call.debug_error_string()))


def _decoded(answer: Any) -> Any:
    """Raises the error that grpc raises for an answer that does not decode; grpc.aio returns None for it."""
    if answer is None:
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.INTERNAL, nothing, nothing, "Exception deserializing response!"
        )
    return answer
