"""A client of a kvstore server.

    import kvstore

    with kvstore.Client("127.0.0.1:7400") as store:
        store.create_dataset("events", max_versions=50)
        store.put_row("events", "user:7", {"click": "pin:3"})
        for column, cells in store.get_row("events", "user:7").items():
            print(column, cells[0].timestamp, cells[0].value)

Every method of the service (wire/kvstore/v1/kvstore.proto) can also be called as it is, by `Client.stub` with the
messages of `kvstore.messages`. Strings are taken as their UTF-8 bytes wherever bytes are wanted; answers have bytes.

Errors are `grpc.RpcError`; its `code()` says which. A call that was turned away, or that failed on its way and changes
nothing, is made again until its time is over; writes have a request ID, by which the server knows a repetition.
A server that answers something else than what it was asked: `BadAnswer`.
"""

import ipaddress
import random
import re
import secrets
import time

import grpc

from kvstore.v1 import kvstore_pb2 as messages
from kvstore.v1 import kvstore_pb2_grpc

__all__ = ["BadAnswer", "Client", "messages"]

_MAX_ANSWER_BYTES = 32 << 20
_SHAPES = {
    "rows": messages.SHAPE_ROWS,
    "objects": messages.SHAPE_OBJECTS,
    "mappings": messages.SHAPE_MAPPINGS,
}


class BadAnswer(Exception):
    """The server answered something else than what it was asked: another object, a page that does not go on."""


def _is_local(address):
    """Whether only this machine reaches an address; names but "localhost" are taken to be elsewhere."""
    if address.startswith("unix:"):
        return True
    parts = re.fullmatch(r"(?:\[([^]]+)\]|([^:]+)):\d+", address)
    if not parts:
        return False
    host = parts[1] or parts[2]
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _metadata(address, token, encrypted, plain_token):
    if not token:
        return []
    # The byte order mark that some editors begin files with.
    token = token.removeprefix("\ufeff")
    for at, character in enumerate(token, 1):
        if not " " <= character <= "~":
            raise ValueError(f"token: character {at} of {len(token)} is no printable ASCII character")
    if not encrypted and not plain_token and not _is_local(address):
        raise ValueError(
            f"token: the connection to {address} is not encrypted, and whoever sees its packets would have the "
            "token: give ca, or say plain_token=True"
        )
    return [("authorization", "Bearer " + token)]


def _check_page(asked, marker, empty=False):
    """There is more only at another place, and behind a page that has something, where none may be empty."""
    if marker and (empty or marker == asked):
        raise BadAnswer("a page that does not go on")


def _same(asked, found):
    if found.id != asked:
        raise BadAnswer("another object")
    return found


def _bytes(value):
    return value.encode() if isinstance(value, str) else value


def _names(columns):
    return None if columns is None else messages.Names(names=[_bytes(c) for c in columns])


def _outcome(error):
    """What the server says of an error that it made; None if it did not make it."""
    for key, value in error.trailing_metadata() or ():
        if key == "kvstore-outcome":
            return value
    return None


def _items(items):
    return {item.column: list(item.cells) for item in items}


class Client:
    """A connection to a server. Thread-safe.

    address    "host:port" or "unix:/path".
    token      sent with each call, where the server wants one. ValueError if it is not printable ASCII (a byte order
               mark before it is left out).
    ca         file with the certificates that the server's is checked against; None: the connection is not encrypted.
    timeout_s  how long a call may take, its repetitions included, and all pages of get_row.
    plain_token  send the token to another machine without encryption, too, where others may see it; else ValueError.
    """

    def __init__(self, address, token=None, ca=None, timeout_s=10.0, plain_token=False):
        options = [
            ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
            ("grpc.enable_retries", 0),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # A server's machine that is gone without a word is found out, also in a scan without a deadline.
            ("grpc.keepalive_time_ms", 20000),
            ("grpc.keepalive_timeout_ms", 10000),
            # Nothing that is compressed is taken: a megabyte could become a gigabyte before its size is looked at.
            # The first refuses the call, which may be after the message was unpacked; the second does not unpack.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.per_message_decompression", 0),
        ]
        metadata = _metadata(address, token, ca is not None, plain_token)
        if ca is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            with open(ca, "rb") as file:
                self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), options)
        self.stub = kvstore_pb2_grpc.KVStoreStub(self._channel)
        self._metadata = metadata
        self._timeout_s = timeout_s
        self._instance = None

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- datasets ----

    def create_dataset(self, name, shape="rows", **settings):
        """Settings are the fields of the message Dataset: backend, type, max_versions, ttl_ms, durability, ..."""
        dataset = messages.Dataset(name=name, shape=_SHAPES[shape], **settings)
        self._write(self.stub.CreateDataset, messages.CreateDatasetRequest(dataset=dataset))

    def drop_dataset(self, name):
        self._write(self.stub.DropDataset, messages.DropDatasetRequest(dataset=name))

    def list_datasets(self):
        return list(self._read(self.stub.ListDatasets, messages.ListDatasetsRequest()).datasets)

    # ---- rows ----

    def put_row(self, dataset, row, values, timestamp=None):
        """Writes {column: value}; the timestamp that the store assigned, None if one was given."""
        cells = [
            messages.CellWrite(column=_bytes(c), value=_bytes(v), timestamp=timestamp) for c, v in values.items()
        ]
        answer = self._write(
            self.stub.PutRow, messages.PutRowRequest(dataset=dataset, row=_bytes(row), cells=cells)
        )
        return answer.timestamp if answer.HasField("timestamp") else None

    def get_row(self, dataset, row, columns=None, versions=1):
        """All columns of the row, or those named: {column: [cells, newest first]}, read in as many pages as needed."""
        found = {}
        marker = b""
        deadline = time.monotonic() + self._timeout_s
        while True:
            options = messages.ReadOptions(columns=_names(columns), versions=versions, marker=marker)
            answer = self._read(
                self.stub.GetRow,
                messages.GetRowRequest(dataset=dataset, row=_bytes(row), options=options),
                deadline,
            )
            _check_page(marker, answer.marker)
            for column, cells in _items(answer.items).items():
                found.setdefault(column, []).extend(cells)
            marker = answer.marker
            if not marker:
                return found

    def delete_row(self, dataset, row, columns=None):
        options = messages.DeleteOptions(columns=_names(columns))
        self._write(
            self.stub.DeleteRow, messages.DeleteRowRequest(dataset=dataset, row=_bytes(row), options=options)
        )

    def scan_rows(self, dataset, start="", end="", columns=None, versions=1, timeout_s=None):
        """Yields (row key, {column: [cells]}) for each row of [start, end), in order on an embedded store.

        timeout_s  how long all of the scan may take; None: as long as it needs.
        """
        request = messages.ScanRowsRequest(
            dataset=dataset,
            range=messages.RowRange(start=_bytes(start), end=_bytes(end)),
            columns=_names(columns),
            versions=versions,
        )
        key, found = None, {}
        stream = self.stub.ScanRows(request, metadata=self._metadata, timeout=timeout_s)
        marker, empty = b"", False
        for answer in stream:
            # A message without rows says how far the server has looked; at an end that it was at, only once.
            moved = answer.marker not in (b"", marker)
            if not answer.rows and not moved and empty:
                stream.cancel()
                raise BadAnswer("a scan with one message after the other without rows")
            empty = empty or not (answer.rows or moved)
            marker = answer.marker
            for row in answer.rows:
                for column, cells in _items(row.items).items():
                    found.setdefault(column, []).extend(cells)
                key = row.key
                if not row.continues:
                    yield key, found
                    found = {}

    # ---- objects ----

    def create_object(self, dataset, data, near=None, shard=None):
        """Stores the text of a JSON object; its ID. Repeated by this client it makes one object, whatever happens."""
        request = messages.CreateObjectRequest(dataset=dataset, data=_bytes(data), near=near, shard=shard)
        return self._write(self.stub.CreateObject, request).id

    def get_object(self, dataset, object_id):
        request = messages.GetObjectRequest(dataset=dataset, id=object_id)
        return _same(object_id, self._read(self.stub.GetObject, request).object)

    def get_objects(self, dataset, ids):
        """The objects in the order asked; None for one that there is not."""
        request = messages.GetObjectsRequest(dataset=dataset, ids=ids)
        found = []
        stream = self.stub.GetObjects(request, metadata=self._metadata, timeout=self._timeout_s)
        for answer in stream:
            if len(answer.results) > len(request.ids) - len(found):
                stream.cancel()
                raise BadAnswer("more objects than were asked for")
            for result in answer.results:
                asked = request.ids[len(found)]
                found.append(None if result.HasField("error") else _same(asked, result.object))
        if len(found) < len(request.ids):
            raise BadAnswer("fewer objects than were asked for")
        return found

    def update_object(self, dataset, object_id, merge_patch):
        """Applies a JSON merge patch (RFC 7396); the object as written."""
        request = messages.UpdateObjectRequest(dataset=dataset, id=object_id, merge_patch=_bytes(merge_patch))
        return _same(object_id, self._write(self.stub.UpdateObject, request).object)

    def delete_object(self, dataset, object_id, hard=False):
        self._write(
            self.stub.DeleteObject, messages.DeleteObjectRequest(dataset=dataset, id=object_id, hard=hard)
        )

    # ---- mappings ----

    def add_mapping(self, dataset, source, target, sequence=None):
        request = messages.AddMappingRequest(dataset=dataset, to=target, sequence=sequence, **{"from": source})
        self._write(self.stub.AddMapping, request)

    def remove_mapping(self, dataset, source, target):
        request = messages.RemoveMappingRequest(dataset=dataset, to=target, **{"from": source})
        return self._write(self.stub.RemoveMapping, request).removed

    def list_mapping(self, dataset, source, descending=False):
        """Yields (to, sequence) of all entries in order."""
        marker = b""
        while True:
            options = messages.ListingOptions(descending=descending, limit=1000, marker=marker)
            request = messages.ListMappingRequest(dataset=dataset, options=options, **{"from": source})
            answer = self._read(self.stub.ListMapping, request)
            _check_page(marker, answer.marker, empty=not answer.entries)
            for entry in answer.entries:
                yield entry.to, entry.sequence
            marker = answer.marker
            if not marker:
                return

    # ---- attempts ----

    def _read(self, method, request, deadline=None):
        return self._repeat(method, request, writes=False, deadline=deadline)

    def _write(self, method, request):
        # Known before the first attempt: afterwards it could be another server's.
        instance = self._instance
        if instance is None:
            instance = self._read(self.stub.GetServer, messages.GetServerRequest()).instance
            self._instance = instance
        request.attempt.request_id = secrets.token_bytes(16)
        return self._repeat(method, request, writes=True, instance=instance)

    def _date(self, attempt, sent, deadline):
        """Notes when the write was sent first, by the clock of the server that it went to; no later."""
        try:
            server = self._repeat(self.stub.GetServer, messages.GetServerRequest(), writes=False, deadline=deadline)
        except grpc.RpcError:
            return
        if server.instance == attempt.instance and server.clock_us:
            # The clocks may run apart, by less than a thousandth.
            attempt.sent_us = max(0, server.clock_us - int((time.monotonic() - sent) * 1_001_000) - 1)

    def _repeat(self, method, request, writes, instance=b"", deadline=None):
        sent = time.monotonic()
        if deadline is None:
            deadline = sent + self._timeout_s
        pause = 0.01
        while True:
            try:
                return method(
                    request, timeout=max(0.001, deadline - time.monotonic()), metadata=self._metadata
                )
            except grpc.RpcError as error:
                outcome = _outcome(error)
                on_its_way = outcome is None and error.code() in (
                    grpc.StatusCode.UNAVAILABLE,
                    grpc.StatusCode.CANCELLED,
                )
                wait = pause * random.uniform(0.5, 1)
                if not (on_its_way or outcome == "refused") or time.monotonic() + wait >= deadline:
                    raise
                if writes and on_its_way:
                    request.attempt.instance = instance
                    # The next write asks who is there by then.
                    self._instance = None
                time.sleep(wait)
                pause = min(2 * pause, 1.0)
                if writes and request.attempt.instance and not request.attempt.HasField("sent_us"):
                    self._date(request.attempt, sent, deadline)
