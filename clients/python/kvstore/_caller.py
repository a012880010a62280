"""How calls are made: deadlines, repetition, and what the server says of an error. As the C++ client does it
(client/caller.cc).

A call that was turned away before anything was done, or a read that was lost on its way, is made again with growing
pauses until its deadline. A write that was lost is made again under the same request ID and with the name of the server
that got it: that one knows whether it happened and gives its answer again; another says that it cannot know.
"""

import itertools
import random
import secrets
import time

import grpc

from kvstore import _checks
from kvstore._errors import BadAnswer, DeadlineExceeded, Error, InvalidArgument, error_of
from kvstore.v1 import kvstore_pb2 as messages

_LEAST_PAUSE_S = 0.01
_MOST_PAUSE_S = 1.0
# An attempt that has less time than this would only fail by that.
_LAST_TRY_S = 0.05
# Without a deadline a server that does not come back is given up at last.
MOST_FAILURES = 12

# Why a call may be made again.
REFUSED = "refused"
LOST = "lost"


def _outcome(error):
    """What the server says of an error that it made; None if it did not make it."""
    for key, value in error.trailing_metadata() or ():
        if key == "kvstore-outcome":
            return value
    return None


class Caller:
    """Makes calls to one server. Thread-safe."""

    def __init__(self, channel, stub, address, metadata, encrypted, timeout_s):
        self._channel = channel
        self._stub = stub
        self._address = address
        self._encrypted = encrypted
        self._timeout_s = _checks.seconds("timeout_s", timeout_s)
        self._instance = None
        self._closed = False
        self.metadata = metadata

    def close(self):
        self._closed = True
        self._channel.close()

    # ---- time ----

    def deadline(self, timeout_s):
        """When a call has to be over, by time.monotonic(): as its caller says, else as the client was told."""
        return time.monotonic() + (self._timeout_s if timeout_s is None else _checks.seconds("timeout_s", timeout_s))

    @staticmethod
    def deadline_if_given(timeout_s):
        """The same for calls that may last: None if nobody says."""
        return None if timeout_s is None else time.monotonic() + _checks.seconds("timeout_s", timeout_s)

    def deadlines(self, timeout_s):
        """For what is read page by page: gives the deadline of each page, which is one for all if the caller says
        so."""
        if timeout_s is None:
            return lambda: self.deadline(None)
        deadline = self.deadline(timeout_s)
        return lambda: deadline

    @staticmethod
    def left(deadline):
        """What is left until then, in seconds, above 0."""
        return max(0.001, deadline - time.monotonic())

    def check(self, deadline):
        """Whether a call may begin, or go on."""
        if self._closed:
            raise InvalidArgument("the client is closed")
        if deadline is not None and time.monotonic() >= deadline:
            raise DeadlineExceeded("it took longer than timeout_s")

    def pause(self, why, count, deadline):
        """Waits before attempt `count` + 2, twice as long after each. False: there is no time for that.

        why  as judge() has it.
        """
        most = min(_LEAST_PAUSE_S * 2 ** min(count, 20), _MOST_PAUSE_S)
        # Half of it at least, so that clients that were turned away together do not come back together.
        wait = most * random.uniform(0.5, 1)
        until = time.monotonic() + wait
        if deadline is not None and until + _LAST_TRY_S >= deadline:
            return False
        if why == LOST:
            # gRPC works on a connection while a call waits for one, else every five seconds.
            try:
                self._stub.GetServer(
                    messages.GetServerRequest(), timeout=wait, metadata=self.metadata, wait_for_ready=True
                )
                # It is there again. A server that ends each connection at once is not asked without a pause, either.
                until = min(until, time.monotonic() + wait / 8)
            except (grpc.RpcError, ValueError):  # The second: the client was closed.
                pass
        time.sleep(max(0, until - time.monotonic()))
        # A machine that is busy may have slept for longer: what it failed by says more than that the time is over.
        return deadline is None or time.monotonic() + _LAST_TRY_S < deadline

    # ---- calls ----

    def start(self, method, request, deadline):
        """Begins a call by the name of its method and returns what gRPC does: the answer, or a stream of them.

        request  an iterator of messages for a method that takes several.
        """
        self.check(deadline)
        timeout = None if deadline is None else self.left(deadline)
        return getattr(self._stub, method)(request, timeout=timeout, metadata=self.metadata)

    def judge(self, error, writes):
        """(why, the exception) for what gRPC raised. The call may be made again as it is if `why` is REFUSED or LOST; a
        write that was LOST only under its request ID. Else `why` is None."""
        code, message, outcome = error.code().name, error.details() or "", _outcome(error)
        if outcome is not None:
            return REFUSED if outcome == "refused" else None, error_of(code, message, in_doubt=outcome == "in-doubt")
        # It failed on the way, there or back; a server that ends cancels what is left.
        if code == "CANCELLED":
            code = "UNAVAILABLE"
        if self._encrypted and "handshake" in message:
            message += "; does it speak TLS?"
        if not self._encrypted and "failed to connect" in message and "Socket closed" in message:
            message += "; does it speak TLS only?"
        if writes:
            message += "; the write may or may not have happened"
        # Another server may be there by then: the next write asks.
        self._instance = None
        why = LOST if code == "UNAVAILABLE" and not self._closed else None
        return why, error_of(code, f"server {self._address}: {message}", in_doubt=writes)

    def bad(self, what, in_doubt=False):
        """The exception for an answer to something else."""
        return BadAnswer(f"server {self._address}: {what}", in_doubt=in_doubt)

    def read(self, method, request, deadline):
        """A call that changes nothing."""
        for count in itertools.count():
            try:
                return self.start(method, request, deadline)
            except grpc.RpcError as error:
                why, told = self.judge(error, writes=False)
                if not why or not self.pause(why, count, deadline):
                    raise told from error

    def write(self, method, request, deadline):
        """A call that changes something; the request has an `attempt`, in which a request_id may be set."""
        # Known before the first attempt: afterwards it could be another server's.
        instance = self._instance_of_server(deadline)
        attempt = request.attempt
        if not attempt.request_id:
            attempt.request_id = secrets.token_bytes(16)
        sent = time.monotonic()
        in_doubt = False
        for count in itertools.count():
            try:
                return self.start(method, request, deadline)
            except Error as told:
                told.in_doubt = in_doubt
                raise
            except grpc.RpcError as error:
                why, told = self.judge(error, writes=True)
                in_doubt = told.in_doubt = in_doubt or told.in_doubt
                if in_doubt:
                    attempt.first = False
                    if not attempt.instance:
                        attempt.instance = instance
                if not why or not self.pause(why, count, deadline):
                    raise told from error
            if attempt.instance and not attempt.HasField("sent_us"):
                self._date(attempt, sent, deadline)

    def collect(self, method, request_of, results, end, add, deadline):
        """Reads a stream that answers a batch, and asks again for what is missing if it breaks off.

        request_of  makes the request for what is not in `results` yet.
        results     gets what `add` makes of each answer, until it has `end` entries.
        add         None from it: no more are wanted.
        """
        for count in itertools.count():
            stream = self.start(method, request_of(), deadline)
            try:
                for answer in stream:
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
                if not why or not self.pause(why, count, deadline):
                    raise told from error
            finally:
                stream.cancel()

    # ---- what writes need ----

    def _instance_of_server(self, deadline):
        instance = self._instance
        if instance is None:
            instance = self.read("GetServer", messages.GetServerRequest(), deadline).instance
            self._instance = instance
        return instance

    def _date(self, attempt, sent, deadline):
        """Notes when the write was sent first, by the clock of the server that it went to; no later."""
        try:
            server = self.read("GetServer", messages.GetServerRequest(), deadline)
        except Error:
            return
        if server.instance == attempt.instance and server.clock_us:
            # The clocks may run apart, by less than a thousandth.
            attempt.sent_us = max(0, server.clock_us - int((time.monotonic() - sent) * 1_001_000) - 1)
