"""The calls as blocking methods: a wire that blocks its thread, and functions that run coroutines over it."""

import contextlib
import functools
import inspect
import queue
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from types import GenericAlias
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc

from kvstore._errors import closed
from kvstore._wire import finish, stub_of

P = ParamSpec("P")
T = TypeVar("T")

_END: Any = object()


class BlockingWire:
    """A Wire (_wire.py) over a channel of grpc. Thread-safe."""

    def __init__(self, open_channel: Callable[[Any], Any], metadata: list[tuple[str, str]]):
        self._channel = open_channel(grpc)
        self.stub = stub_of(self._channel)
        self._metadata = metadata
        self._closing = threading.Event()

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    async def call(self, method: str, request: Any, timeout: float, wait_for_ready: bool = False) -> Any:
        return self._begin(method, request, timeout, wait_for_ready)

    def stream(self, method: str, request: Any, timeout: float | None) -> "_Stream":
        if request is not None:
            return _Stream(self._begin(method, request, timeout))
        to_send: queue.SimpleQueue[Any] = queue.SimpleQueue()
        return _Stream(self._begin(method, iter(to_send.get, None), timeout), to_send)

    async def sleep(self, seconds: float) -> None:
        self._closing.wait(seconds)

    async def close(self) -> None:
        self._closing.set()
        self._channel.close()

    def _begin(self, method: str, request: Any, timeout: float | None, wait_for_ready: bool = False) -> Any:
        try:
            return getattr(self.stub, method)(
                request, timeout=timeout, metadata=self._metadata, wait_for_ready=wait_for_ready
            )
        except ValueError as error:
            # gRPC raises this for a closed channel.
            if not self.closed:
                raise
            raise closed() from error


class _Stream:
    def __init__(self, answers: Any, to_send: "queue.SimpleQueue[Any] | None" = None):
        self._answers = answers
        self._to_send = to_send

    async def read(self) -> Any:
        return next(self._answers, None)

    def send(self, message: Any) -> None:
        assert self._to_send is not None
        self._to_send.put(message)

    def cancel(self) -> None:
        if self._to_send is not None:
            # Ends the thread that sends the messages.
            self._to_send.put(None)
        self._answers.cancel()


def blocking(call: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Turns a coroutine method of Calls into a blocking method of a client that has the Calls as `_calls`."""

    @functools.wraps(call)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return finish(call(self._calls, *args, **kwargs))

    return method


def iterating(
    call: Callable[Concatenate[Any, P], AsyncGenerator[T, None]]
) -> Callable[Concatenate[Any, P], Generator[T, None, None]]:
    """Does the same for an asynchronous generator."""

    @functools.wraps(call)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return _items(call(self._calls, *args, **kwargs))

    # For help(): the annotation that wraps() copied says AsyncGenerator.
    signature = inspect.signature(call)
    given = GenericAlias(Generator, (signature.return_annotation.__args__[0], None, None))
    method.__annotations__["return"] = given
    setattr(method, "__signature__", signature.replace(return_annotation=given))
    return method


def _items(found: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    try:
        with _no_loop():
            item = finish(anext(found, _END))
        while item is not _END:
            yield item
            item = finish(anext(found, _END))
    finally:
        # Also runs when the caller stops iterating.
        finish(found.aclose())


@contextlib.contextmanager
def _no_loop() -> Iterator[None]:
    """Hides generators that begin from an event loop that runs in this thread, which would end them when it ends."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*hooks)
