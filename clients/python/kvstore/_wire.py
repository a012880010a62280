"""The interface over which the calls of this package are made.

The calls are written once, as coroutines over a Wire. There are two: AsyncioWire waits as asyncio does; BlockingWire
holds its thread instead, so that a coroutine over it never waits and is run to its end in one step.
"""

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, cast

from kvstore.v1 import kvstore_pb2_grpc, reports_pb2_grpc

T = TypeVar("T")


class Stream(Protocol):
    """The answers to one call."""

    async def read(self) -> Any:
        """Returns the next answer; None at the end. Raises grpc.RpcError."""

    def send(self, message: Any) -> None:
        """Sends one more message of a call that was begun without a request; None ends the request."""

    def cancel(self) -> None:
        """Ends the call, if it has not ended."""


class Wire(Protocol):
    """Methods of one server, by their names in kvstore.proto and reports.proto. `timeout` is in seconds; None: no
    timeout."""

    # Has the methods of both services.
    stub: Any

    @property
    def closed(self) -> bool: ...

    async def call(self, method: str, request: Any, timeout: float, wait_for_ready: bool = False) -> Any:
        """Makes a call with one request and one answer. Raises grpc.RpcError, or InvalidArgument after close()."""

    def stream(self, method: str, request: Any, timeout: float | None) -> Stream:
        """Begins a call whose answer is a stream; without a request, its messages are sent by Stream.send."""

    async def sleep(self, seconds: float) -> None:
        """Sleeps for so many seconds, or until close()."""

    async def close(self) -> None:
        """Ends the calls in flight."""


def stub_of(channel: Any) -> Any:
    """Returns the methods of both services over a channel, which protoc's plugin generates without types."""
    kinds: tuple[Any, ...] = (kvstore_pb2_grpc.KVStoreStub, reports_pb2_grpc.ReportsStub)
    return SimpleNamespace(**{name: method for kind in kinds for name, method in vars(kind(channel)).items()})


def finish(step: Awaitable[T]) -> T:
    """Returns the result of an awaitable that never has to wait."""
    try:
        next(step.__await__())
    except StopIteration as ended:
        return cast(T, ended.value)
    raise RuntimeError("it waits")
