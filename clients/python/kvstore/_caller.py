"""How calls are made: deadlines, retries, and the meaning of errors. The C++ client works the same way
(client/caller.cc).

A call that the server turned away before it did anything, and a read whose connection was lost, are retried with
growing pauses until their deadline. A write whose connection was lost is retried under the same request ID and with the
name of the server that received it: that server knows whether the write happened, and repeats its answer; another one
says that it cannot know.
"""

import itertools
import random
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from kvstore import _checks
from kvstore._errors import BadAnswer, DeadlineExceeded, Error, InvalidArgument, closed, error_of
from kvstore._wire import Stream, Wire
from kvstore.v1 import kvstore_pb2 as messages

T = TypeVar("T")

_LEAST_PAUSE_S = 0.01
_MOST_PAUSE_S = 1.0
# An attempt with less time than this would only time out.
_LAST_TRY_S = 0.05
# Calls without a deadline give up after this many failures in a row.
MOST_FAILURES = 12

# Why a call may be made again.
REFUSED = "refused"
LOST = "lost"


def _outcome(error: Any) -> str | None:
    """Returns the outcome with which the server marked its error; None if the error is not from the server."""
    for key, value in error.trailing_metadata() or ():
        if key == "kvstore-outcome":
            return str(value)
    return None


class Caller:
    """Makes calls to one server. As thread-safe as its wire."""

    def __init__(self, wire: Wire, address: str, encrypted: bool, timeout_s: float):
        self._wire = wire
        self._address = address
        self._encrypted = encrypted
        self._timeout_s = timeout_s
        self._instance: bytes | None = None

    async def close(self) -> None:
        await self._wire.close()

    # ---- time ----

    def deadline(self, timeout_s: float | None) -> float:
        """Returns the deadline of a call, by time.monotonic(): from its own timeout, else from the client's."""
        return time.monotonic() + (self._timeout_s if timeout_s is None else _checks.seconds("timeout_s", timeout_s))

    @staticmethod
    def deadline_if_given(timeout_s: float | None) -> float | None:
        """Does the same for calls that may take long: None without a timeout of their own."""
        return None if timeout_s is None else time.monotonic() + _checks.seconds("timeout_s", timeout_s)

    def deadlines(self, timeout_s: float | None) -> Callable[[], float]:
        """Returns a function that gives the deadline of each page of a read: the same for all pages if the read has a
        timeout of its own."""
        if timeout_s is None:
            return lambda: self.deadline(None)
        deadline = self.deadline(timeout_s)
        return lambda: deadline

    @staticmethod
    def left(deadline: float) -> float:
        """Returns the seconds that are left until the deadline, above 0."""
        return max(0.001, deadline - time.monotonic())

    def check(self, deadline: float | None) -> None:
        """Raises an error if a call must not begin or continue."""
        if self._wire.closed:
            raise closed()
        if deadline is not None and time.monotonic() >= deadline:
            raise DeadlineExceeded("it took longer than timeout_s")

    async def pause(self, why: str | None, count: int, deadline: float | None) -> bool:
        """Waits before attempt `count` + 2, twice as long after each. Returns False if there is no time for that.

        why  the reason that judge() returned.
        """
        most = min(_LEAST_PAUSE_S * 2 ** min(count, 20), _MOST_PAUSE_S)
        # At least half of that, at random, so that clients that were turned away together do not come back together.
        wait = most * random.uniform(0.5, 1)
        until = time.monotonic() + wait
        if deadline is not None and until + _LAST_TRY_S >= deadline:
            return False
        if why == LOST:
            # gRPC tries to connect while a call waits for the connection, otherwise only every five seconds.
            try:
                await self._wire.call("GetServer", messages.GetServerRequest(), wait, wait_for_ready=True)
                # The server is back. A short pause remains, for servers that end each connection at once.
                until = min(until, time.monotonic() + wait / 8)
            except (grpc.RpcError, InvalidArgument):  # The second: the client was closed.
                pass
        await self._wire.sleep(max(0, until - time.monotonic()))
        # The client may have been closed meanwhile, or a busy machine has slept for longer. Then the caller raises the
        # error of the last attempt, which says more.
        return not self._wire.closed and (deadline is None or time.monotonic() + _LAST_TRY_S < deadline)

    async def outlast(self, error: Any, failures: int, deadline: float | None) -> None:
        """Waits before a stream that gRPC's exception has ended is begun again, where it was. Raises the error if it
        cannot go on, or, without a deadline, was not to be had for too long.

        failures  how many there were since its last message.
        """
        why, told = self.judge(error, writes=False)
        over = deadline is None and failures == MOST_FAILURES
        if not why or over or not await self.pause(why, failures, deadline):
            raise told from error

    # ---- calls ----

    def stream(self, method: str, request: Any, deadline: float | None) -> Stream:
        """Begins a call whose answer is a stream, by the name of its method. The caller must cancel it at the end.

        request  None: the request is a stream too, whose messages are sent by Stream.send.
        """
        self.check(deadline)
        return self._wire.stream(method, request, None if deadline is None else self.left(deadline))

    async def _once(self, method: str, request: Any, deadline: float) -> Any:
        self.check(deadline)
        return await self._wire.call(method, request, self.left(deadline))

    def judge(self, error: Any, writes: bool) -> tuple[str | None, Error]:
        """Returns (why, the exception to raise) for gRPC's exception. The call may be retried if `why` is REFUSED or
        LOST; a write that was LOST only under its request ID. Otherwise `why` is None."""
        code, message, outcome = error.code().name, error.details() or "", _outcome(error)
        if outcome is not None:
            return REFUSED if outcome == "refused" else None, error_of(code, message, in_doubt=outcome == "in-doubt")
        # The call was lost on its way, there or back; a server that stops cancels the calls that are left.
        if code == "CANCELLED":
            code = "UNAVAILABLE"
            message = "the client was closed" if self._wire.closed else message
        if self._encrypted and "handshake" in message:
            message += "; does it speak TLS?"
        if not self._encrypted and "failed to connect" in message and "Socket closed" in message:
            message += "; does it speak TLS only?"
        if writes:
            message += "; the write may or may not have happened"
        # Another server may listen there by then, so the next write asks for its instance.
        self._instance = None
        why = LOST if code == "UNAVAILABLE" and not self._wire.closed else None
        return why, error_of(code, f"server {self._address}: {message}", in_doubt=writes)

    def bad(self, what: str, in_doubt: bool = False) -> BadAnswer:
        """Returns the exception for an answer that does not fit the request."""
        return BadAnswer(f"server {self._address}: {what}", in_doubt=in_doubt)

    async def read(self, method: str, request: Any, deadline: float) -> Any:
        """Makes a call that changes nothing."""
        for count in itertools.count():
            try:
                return await self._once(method, request, deadline)
            except grpc.RpcError as error:
                why, told = self.judge(error, writes=False)
                if not why or not await self.pause(why, count, deadline):
                    raise told from error

    async def write(self, method: str, request: Any, deadline: float) -> Any:
        """Makes a call that changes something; its request has an `attempt`, in which a request_id may be set."""
        # Asked for before the first attempt, because afterwards another server could answer.
        instance = await self._instance_of_server(deadline)
        attempt: messages.Attempt = request.attempt
        if not attempt.request_id:
            attempt.request_id = secrets.token_bytes(16)
        sent = time.monotonic()
        in_doubt = False
        for count in itertools.count():
            try:
                return await self._once(method, request, deadline)
            except Error as over:
                over.in_doubt = in_doubt
                raise
            except grpc.RpcError as error:
                why, told = self.judge(error, writes=True)
                in_doubt = told.in_doubt = in_doubt or told.in_doubt
                if in_doubt:
                    attempt.first = False
                    if not attempt.instance:
                        attempt.instance = instance
                if not why or not await self.pause(why, count, deadline):
                    raise told from error
            if attempt.instance and not attempt.HasField("sent_us"):
                await self._date(attempt, sent, deadline)

    async def read_all(self, method: str, request: Any, deadline: float) -> list[Any]:
        """Makes a call that changes nothing and whose answer is a stream. Returns its messages; begins again if it
        breaks off."""
        count = 0
        while True:
            stream = self.stream(method, request, deadline)
            answers: list[Any] = []
            try:
                while (answer := await stream.read()) is not None:
                    answers.append(answer)
                return answers
            except grpc.RpcError as error:
                why, told = self.judge(error, writes=False)
                if not why or not await self.pause(why, count, deadline):
                    raise told from error
            finally:
                stream.cancel()
            count += 1

    async def collect(
        self,
        method: str,
        request_of: Callable[[], Any],
        results: list[T],
        end: int,
        add: Callable[[Any], T | None],
        deadline: float,
    ) -> None:
        """Reads a stream that answers a batch, and asks again for the missing entries if it breaks off.

        request_of  makes the request for the entries that are not in `results` yet.
        results     receives what `add` returns for each answer, until it has `end` entries.
        add         converts an answer; returns None if no more are wanted.
        """
        for count in itertools.count():
            stream = self.stream(method, request_of(), deadline)
            try:
                while (answer := await stream.read()) is not None:
                    if not answer.results:
                        raise self.bad("answered a message without entries")
                    if len(answer.results) > end - len(results):
                        raise self.bad("answered more entries than were sent")
                    for result in answer.results:
                        added = add(result)
                        if added is None:
                            return
                        results.append(added)
                if len(results) < end:
                    raise self.bad("answered fewer entries than were sent")
                return
            except grpc.RpcError as error:
                if len(results) == end:
                    return
                why, told = self.judge(error, writes=False)
                if not why or not await self.pause(why, count, deadline):
                    raise told from error
            finally:
                stream.cancel()

    # ---- what writes need ----

    async def _instance_of_server(self, deadline: float) -> bytes:
        instance = self._instance
        if instance is None:
            server: messages.GetServerResponse = await self.read("GetServer", messages.GetServerRequest(), deadline)
            self._instance = instance = server.instance
        return instance

    async def _date(self, attempt: messages.Attempt, sent: float, deadline: float) -> None:
        """Sets when the write was first sent, by the clock of the server that received it, or a little earlier."""
        try:
            server: messages.GetServerResponse = await self.read("GetServer", messages.GetServerRequest(), deadline)
        except Error:
            return
        if server.instance == attempt.instance and server.clock_us:
            # The speeds of the two clocks may differ, by less than a thousandth.
            attempt.sent_us = max(0, server.clock_us - int((time.monotonic() - sent) * 1_001_000) - 1)


class Calling:
    """Calls that are made by a Caller."""

    def __init__(self, caller: Caller):
        self._caller = caller
