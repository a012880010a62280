"""Calls on many rows. Each entry succeeds or fails on its own; batches are cut into messages."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar, overload

import grpc

from kvstore import _checks
from kvstore._caller import MOST_FAILURES, Calling
from kvstore._errors import BatchError, Error, InvalidArgument, ResourceExhausted, entry_error, error_of
from kvstore._rows import cells_of, condition_of, delete_options, read_options, row_of
from kvstore._types import Row, RowDelete, RowRead, RowWrite, Several, Text
from kvstore.v1 import kvstore_pb2 as messages

T = TypeVar("T")
Made = TypeVar("Made")
M = TypeVar("M", messages.RowRead, messages.RowWrite, messages.RowDelete)

# A message of a batch has at most this many bytes and entries; only a single entry may be larger.
_MESSAGE_BYTES = 4 << 20
_MESSAGE_ENTRIES = 2000
# How many messages of an import are in flight at a time.
_MESSAGES_AHEAD = 2
# A batch of reads ends with the entry that exceeds this size.
_BATCH_BYTES = 64 << 20


def outcome_of(results: list[T], return_exceptions: bool) -> list[T]:
    """Returns the results of a batch; raises a BatchError if one is an Error and the caller did not ask for those."""
    if not return_exceptions and any(isinstance(result, Error) for result in results):
        raise BatchError(results)
    return results


def batch_full() -> ResourceExhausted:
    return ResourceExhausted("batch: the entries before have 64 MiB together; ask for this one in another batch")


class Bytes:
    """Counts the bytes that a batch of reads has returned."""

    def __init__(self) -> None:
        self._bytes = 0

    def full(self) -> bool:
        return self._bytes > _BATCH_BYTES

    def add(self, count: int) -> None:
        self._bytes += count


def made(entries: Iterable[T], make: Callable[[T], Made]) -> tuple[list[Made], list[Error | None]]:
    """Returns (messages of the valid entries, a list for the results with the Errors of the invalid ones)."""
    good: list[Made] = []
    results: list[Error | None] = []
    for entry in entries:
        try:
            good.append(make(entry))
            results.append(None)
        except InvalidArgument as error:
            results.append(error)
    return good, results


def filled(results: list[Error | None], answers: Iterable[T]) -> list[T | Error]:
    """Returns the results with an answer in each place that made() left open."""
    left = iter(answers)
    return [next(left) if result is None else result for result in results]


def _cut(entries: list[M]) -> Iterator[list[M]]:
    """Yields lists of entries that fit into one message each."""
    begin = size = 0
    for at, entry in enumerate(entries):
        bytes_of_entry = entry.ByteSize() + 8
        if at > begin and (size + bytes_of_entry > _MESSAGE_BYTES or at - begin == _MESSAGE_ENTRIES):
            yield entries[begin:at]
            begin, size = at, 0
        size += bytes_of_entry
    if begin < len(entries):
        yield entries[begin:]


def _read_of(entry: Text | RowRead) -> messages.RowRead:
    read = entry if isinstance(entry, RowRead) else RowRead(entry)
    return messages.RowRead(row=_checks.row_key(read.row), options=read_options(read))


def _write_of(entry: RowWrite) -> messages.RowWrite:
    if not isinstance(entry, RowWrite):
        raise InvalidArgument(f"writes: an entry is of type {type(entry).__name__}; it is a kvstore.RowWrite")
    return messages.RowWrite(
        row=_checks.row_key(entry.row),
        cells=cells_of(entry.values, entry.timestamp),
        condition=condition_of(entry.condition),
        sync=_checks.flag("sync", entry.sync),
    )


def _delete_of(entry: Text | RowDelete) -> messages.RowDelete:
    one = entry if isinstance(entry, RowDelete) else RowDelete(entry)
    return messages.RowDelete(row=_checks.row_key(one.row), options=delete_options(one.columns, one.cells))


def _put_result(result: messages.PutRowsResponse.Result) -> int | Error | None:
    if result.HasField("error"):
        return entry_error(result.error)
    return result.timestamp if result.HasField("timestamp") else None


def _not_sent(told: Error) -> Error:
    """Returns the error of entries that were not sent because an earlier message failed."""
    return error_of(told.code, f"not sent: {told.message}")


class Batches(Calling):
    """All of these take 1 to 10,000 entries and return a list with a result for each, in order. If entries failed, they
    raise a BatchError, whose `results` has an Error in the place of each of these; with return_exceptions=True they
    return that list. An error of the whole call (the dataset, the number of entries) is raised directly.
    """

    @overload
    async def get_rows(
        self,
        dataset: str,
        reads: Several[Text | RowRead],
        *,
        return_exceptions: Literal[False] = False,
        timeout_s: float | None = None,
    ) -> list[Row]: ...

    @overload
    async def get_rows(
        self,
        dataset: str,
        reads: Several[Text | RowRead],
        *,
        return_exceptions: Literal[True],
        timeout_s: float | None = None,
    ) -> list[Row | Error]: ...

    async def get_rows(
        self,
        dataset: str,
        reads: Several[Text | RowRead],
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> list[Any]:
        """Returns the first page of each row as a Row; if more follows, pass its `marker` to get_row_page.

        reads  row keys, or RowReads that say what to read.

        The answers have about 64 MiB together; entries beyond that are ResourceExhausted: ask for them again.
        """
        dataset = _checks.text("dataset", dataset)
        deadline = self._caller.deadline(timeout_s)
        good, results = made(_checks.listed("reads", reads, _checks.MAX_BATCH), _read_of)
        rows: list[Row | Error] = []
        size = Bytes()

        def add(result: messages.GetRowsResponse.Result) -> Row | Error | None:
            if size.full():
                return None
            if result.HasField("error"):
                return entry_error(result.error)
            row = row_of(result, good[len(rows)].options, self._caller.bad)
            size.add(sum(len(name) + sum(len(cell.value) for cell in cells) for name, cells in row.items()))
            return row

        for part in _cut(good):
            if size.full():
                break
            end = len(rows) + len(part)
            await self._caller.collect(
                "GetRows",
                lambda: messages.GetRowsRequest(dataset=dataset, reads=good[len(rows) : end]),
                rows,
                end,
                add,
                deadline,
            )
        rows.extend(batch_full() for _ in range(len(good) - len(rows)))
        return outcome_of(filled(results, rows), return_exceptions)

    @overload
    async def put_rows(
        self,
        dataset: str,
        writes: Iterable[RowWrite],
        *,
        return_exceptions: Literal[False] = False,
        timeout_s: float | None = None,
    ) -> list[int | None]: ...

    @overload
    async def put_rows(
        self,
        dataset: str,
        writes: Iterable[RowWrite],
        *,
        return_exceptions: Literal[True],
        timeout_s: float | None = None,
    ) -> list[int | None | Error]: ...

    async def put_rows(
        self,
        dataset: str,
        writes: Iterable[RowWrite],
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> list[Any]:
        """Writes rows, each all or none. Returns for each the timestamp that the store assigned, or None, as put_row
        does. Writes of the same row happen in the given order.

        writes     RowWrites.
        timeout_s  None: the client's timeout, but no limit for more than 4 MiB or 2,000 entries.

        More than that is sent as a stream, which is retried only if the server turned it away as a whole. If it is lost
        or turned away later, entries that may have been written are in doubt (Error.in_doubt); entries that were not
        sent are not.
        """
        dataset = _checks.text("dataset", dataset)
        good, results = made(_checks.listed("writes", writes, _checks.MAX_BATCH), _write_of)
        parts = list(_cut(good))
        answers: list[int | Error | None] = []
        if len(parts) == 1:
            request = messages.PutRowsRequest(dataset=dataset, writes=good)
            answer: messages.PutRowsResponse = await self._caller.write(
                "PutRows", request, self._caller.deadline(timeout_s)
            )
            self._check_count(len(answer.results), len(good))
            answers = [_put_result(result) for result in answer.results]
        elif parts:
            answers = await self._import(dataset, parts, self._caller.deadline_if_given(timeout_s))
        return outcome_of(filled(results, answers), return_exceptions)

    @overload
    async def delete_rows(
        self,
        dataset: str,
        deletes: Several[Text | RowDelete],
        *,
        return_exceptions: Literal[False] = False,
        timeout_s: float | None = None,
    ) -> list[None]: ...

    @overload
    async def delete_rows(
        self,
        dataset: str,
        deletes: Several[Text | RowDelete],
        *,
        return_exceptions: Literal[True],
        timeout_s: float | None = None,
    ) -> list[None | Error]: ...

    async def delete_rows(
        self,
        dataset: str,
        deletes: Several[Text | RowDelete],
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> list[Any]:
        """Removes rows, or parts of them, as delete_row does. Returns a list of None.

        deletes  row keys, or RowDeletes that say what to delete.
        """
        dataset = _checks.text("dataset", dataset)
        deadline = self._caller.deadline(timeout_s)
        good, results = made(_checks.listed("deletes", deletes, _checks.MAX_BATCH), _delete_of)
        # The result of a successful delete is None, which is also what made() leaves open.
        answers: list[Error | None] = []
        for part in _cut(good):
            try:
                answer: messages.DeleteRowsResponse = await self._caller.write(
                    "DeleteRows", messages.DeleteRowsRequest(dataset=dataset, deletes=part), deadline
                )
                self._check_count(len(answer.results), len(part))
            except Error as told:
                if not answers:
                    raise
                answers.extend(told for _ in part)
                # Later entries must not overtake those that the caller may retry.
                answers.extend(_not_sent(told) for _ in range(len(good) - len(answers)))
                break
            answers.extend(
                entry_error(result.error) if result.HasField("error") else None for result in answer.results
            )
        return outcome_of(filled(results, answers), return_exceptions)

    # ---- imports ----

    def _check_count(self, answered: int, sent: int) -> None:
        if answered != sent:
            raise self._caller.bad(
                f"answered {'fewer' if answered < sent else 'more'} entries than were sent", in_doubt=True
            )

    async def _import(
        self, dataset: str, parts: list[list[messages.RowWrite]], deadline: float | None
    ) -> list[int | Error | None]:
        """Returns the results of writes that are sent as several messages; retries while nothing was done."""
        count = 0
        while True:
            answers: list[int | Error | None] = []
            why, told = await self._import_once(dataset, parts, answers, deadline)
            if told is None:
                return answers
            over = deadline is None and count == MOST_FAILURES
            if not why or over or not await self._caller.pause(why, count, deadline):
                raise told from told.__cause__
            count += 1

    async def _import_once(
        self,
        dataset: str,
        parts: list[list[messages.RowWrite]],
        answers: list[int | Error | None],
        deadline: float | None,
    ) -> tuple[str | None, Error | None]:
        """Fills `answers` and returns (None, None); or, if nothing was done, returns what Caller.judge returned."""
        stream = self._caller.stream("ImportRows", None, deadline)
        total = sum(map(len, parts))
        sent = 0

        def send() -> None:
            nonlocal sent
            if sent < len(parts):
                stream.send(messages.PutRowsRequest(dataset=dataset, writes=parts[sent]))
                sent += 1
            else:
                stream.send(None)

        try:
            for _ in range(_MESSAGES_AHEAD):
                send()
            for part in parts:
                # Each message gets one answer.
                answer: messages.PutRowsResponse | None = await stream.read()
                if answer is None:
                    break
                self._check_count(len(answer.results), len(part))
                answers.extend(_put_result(result) for result in answer.results)
                send()
            self._check_count(len(answers), total)
            return None, None
        except grpc.RpcError as error:
            why, told = self._caller.judge(error, writes=True)
            told.__cause__ = error
        finally:
            stream.cancel()
        if not answers and not told.in_doubt:
            return why, told
        doubtful = sum(map(len, parts[:sent])) - len(answers)
        answers.extend(told for _ in range(doubtful))
        answers.extend(_not_sent(told) for _ in range(total - len(answers)))
        return None, None
