"""Calls on many rows. Each entry succeeds or fails on its own; batches are cut into messages."""

import itertools
import queue

import grpc

from kvstore import _checks
from kvstore._caller import MOST_FAILURES
from kvstore._errors import BatchError, Error, InvalidArgument, ResourceExhausted, entry_error, error_of
from kvstore._rows import cells_of, condition_of, delete_options, read_options, row_of
from kvstore._types import RowDelete, RowRead, RowWrite
from kvstore.v1 import kvstore_pb2 as messages

# A message of a batch is closed when it has so much; one entry may be larger.
_MESSAGE_BYTES = 4 << 20
_MESSAGE_ENTRIES = 2000
# Messages of an import that are on their way at a time.
_MESSAGES_AHEAD = 2
# The entry of a batch of reads that passes it is the last one that is read.
_BATCH_BYTES = 64 << 20


def outcome_of(results, return_exceptions):
    """What a batch returns: its results, unless one is an Error and the caller did not ask for those."""
    if not return_exceptions and any(isinstance(result, Error) for result in results):
        raise BatchError(results)
    return results


def batch_full():
    return ResourceExhausted("batch: the entries before have 64 MiB together; ask for this one in another batch")


class Bytes:
    """Counts what a batch of reads has brought."""

    def __init__(self):
        self._bytes = 0

    def full(self):
        return self._bytes > _BATCH_BYTES

    def add(self, count):
        self._bytes += count


def made(entries, make):
    """(messages of the entries that make no mistake, a list for the results with the Errors of those that do)."""
    good, results = [], []
    for entry in entries:
        try:
            good.append(make(entry))
            results.append(None)
        except InvalidArgument as error:
            results.append(error)
    return good, results


def filled(results, answers):
    """The results with an answer in each place that made() left open."""
    answers = iter(answers)
    return [next(answers) if result is None else result for result in results]


def _cut(entries):
    """Lists of entries that go into one message each."""
    begin = size = 0
    for at, entry in enumerate(entries):
        bytes_of_entry = entry.ByteSize() + 8
        if at > begin and (size + bytes_of_entry > _MESSAGE_BYTES or at - begin == _MESSAGE_ENTRIES):
            yield entries[begin:at]
            begin, size = at, 0
        size += bytes_of_entry
    if begin < len(entries):
        yield entries[begin:]


def _read_of(entry):
    read = entry if isinstance(entry, RowRead) else RowRead(entry)
    return messages.RowRead(row=_checks.row_key(read.row), options=read_options(read))


def _write_of(entry):
    if not isinstance(entry, RowWrite):
        raise InvalidArgument(f"writes: an entry is of type {type(entry).__name__}; it is a kvstore.RowWrite")
    return messages.RowWrite(
        row=_checks.row_key(entry.row),
        cells=cells_of(entry.values, entry.timestamp),
        condition=condition_of(entry.condition),
        sync=_checks.flag("sync", entry.sync),
    )


def _delete_of(entry):
    one = entry if isinstance(entry, RowDelete) else RowDelete(entry)
    return messages.RowDelete(row=_checks.row_key(one.row), options=delete_options(one.columns, one.cells))


def _put_result(result):
    if result.HasField("error"):
        return entry_error(result.error)
    return result.timestamp if result.HasField("timestamp") else None


def _not_sent(told):
    """For entries behind one whose message failed."""
    return error_of(told.code, f"not sent: {told.message}")


class Batches:
    """All of these take 1 to 10,000 entries and return a list with a result for each, in order. If entries failed they
    raise a BatchError, whose `results` has an Error in the place of each of them; with return_exceptions=True that list
    is returned. What concerns the whole call (the dataset, the number of entries) is raised as it is.
    """

    def get_rows(self, dataset, reads, *, return_exceptions=False, timeout_s=None):
        """The first page of each row: a Row, whose `marker` get_row_page takes if more follows.

        reads  row keys, or RowReads that say what to read of them.

        The answers have about 64 MiB together; entries behind are ResourceExhausted, to be asked for in another batch.
        """
        dataset = _checks.text("dataset", dataset)
        deadline = self._caller.deadline(timeout_s)
        good, results = made(_checks.listed("reads", reads, _checks.MAX_BATCH), _read_of)
        rows, size = [], Bytes()

        def add(result):
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
            self._caller.collect(
                "GetRows",
                lambda: messages.GetRowsRequest(dataset=dataset, reads=good[len(rows) : end]),
                rows,
                end,
                add,
                deadline,
            )
        rows.extend(batch_full() for _ in range(len(good) - len(rows)))
        return outcome_of(filled(results, rows), return_exceptions)

    def put_rows(self, dataset, writes, *, return_exceptions=False, timeout_s=None):
        """Writes rows, each all or none: for each the timestamp that the store assigned, or None, as put_row returns
        it. Writes of the same row happen in the order given.

        writes     RowWrites.
        timeout_s  for what has more than 4 MiB or 2,000 entries None is: as long as it takes.

        So much goes as a stream, and is made again only if it was turned away as a whole. If it is lost or turned away
        later, entries that may have been written are in doubt (Error.in_doubt), those that were not sent are not.
        """
        dataset = _checks.text("dataset", dataset)
        good, results = made(_checks.listed("writes", writes, _checks.MAX_BATCH), _write_of)
        parts = list(_cut(good))
        answers = []
        if len(parts) == 1:
            request = messages.PutRowsRequest(dataset=dataset, writes=good)
            answer = self._caller.write("PutRows", request, self._caller.deadline(timeout_s))
            self._check_count(len(answer.results), len(good))
            answers = [_put_result(result) for result in answer.results]
        elif parts:
            answers = self._import(dataset, parts, self._caller.deadline_if_given(timeout_s))
        return outcome_of(filled(results, answers), return_exceptions)

    def delete_rows(self, dataset, deletes, *, return_exceptions=False, timeout_s=None):
        """Removes rows, or parts of them, as delete_row does: a list of None.

        deletes  row keys, or RowDeletes that say what to delete of them.
        """
        dataset = _checks.text("dataset", dataset)
        deadline = self._caller.deadline(timeout_s)
        good, results = made(_checks.listed("deletes", deletes, _checks.MAX_BATCH), _delete_of)
        # None is what made() leaves open, too.
        answers = []
        for part in _cut(good):
            try:
                answer = self._caller.write(
                    "DeleteRows", messages.DeleteRowsRequest(dataset=dataset, deletes=part), deadline
                )
                self._check_count(len(answer.results), len(part))
            except Error as told:
                if not answers:
                    raise
                answers.extend(told for _ in part)
                # Those behind must not come before what is made again of these.
                answers.extend(_not_sent(told) for _ in range(len(good) - len(answers)))
                break
            answers.extend(
                entry_error(result.error) if result.HasField("error") else None for result in answer.results
            )
        return outcome_of(filled(results, answers), return_exceptions)

    # ---- imports ----

    def _check_count(self, answered, sent):
        if answered != sent:
            raise self._caller.bad(
                f"answered {'fewer' if answered < sent else 'more'} entries than were sent", in_doubt=True
            )

    def _import(self, dataset, parts, deadline):
        """The results of writes that go as several messages; made again while nothing was done."""
        for count in itertools.count():
            answers = []
            why, told = self._import_once(dataset, parts, answers, deadline)
            if told is None:
                return answers
            over = deadline is None and count == MOST_FAILURES
            if not why or over or not self._caller.pause(why, count, deadline):
                raise told from told.__cause__

    def _import_once(self, dataset, parts, answers, deadline):
        """Fills `answers`: (None, None). Or, if nothing was done: (may it be made again, why not) as Caller.judge."""
        to_send = queue.SimpleQueue()
        stream = self._caller.start("ImportRows", iter(to_send.get, None), deadline)
        total = sum(map(len, parts))
        sent = 0

        def send():
            nonlocal sent
            if sent < len(parts):
                to_send.put(messages.PutRowsRequest(dataset=dataset, writes=parts[sent]))
                sent += 1
            else:
                to_send.put(None)

        try:
            for _ in range(_MESSAGES_AHEAD):
                send()
            for part, answer in zip(parts, stream):
                # Each message is answered by one.
                self._check_count(len(answer.results), len(part))
                answers.extend(_put_result(result) for result in answer.results)
                send()
            self._check_count(len(answers), total)
            return None, None
        except grpc.RpcError as error:
            why, told = self._caller.judge(error, writes=True)
            told.__cause__ = error
        finally:
            to_send.put(None)
            stream.cancel()
        if not answers and not told.in_doubt:
            return why, told
        doubtful = sum(map(len, parts[:sent])) - len(answers)
        answers.extend(told for _ in range(doubtful))
        answers.extend(_not_sent(told) for _ in range(total - len(answers)))
        return None, None
