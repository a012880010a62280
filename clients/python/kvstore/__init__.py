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
"""

import random
import secrets
import time

import grpc

from kvstore.v1 import kvstore_pb2 as messages
from kvstore.v1 import kvstore_pb2_grpc

__all__ = ["Client", "messages"]

_MAX_ANSWER_BYTES = 32 << 20
_SHAPES = {
    "rows": messages.SHAPE_ROWS,
    "objects": messages.SHAPE_OBJECTS,
    "mappings": messages.SHAPE_MAPPINGS,
}


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
    token      sent with each call, where the server wants one.
    ca         file with the certificates that the server's is checked against; None: the connection is not encrypted.
    timeout_s  how long a call may take, its repetitions included.
    """

    def __init__(self, address, token=None, ca=None, timeout_s=10.0):
        options = [
            ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
            ("grpc.enable_retries", 0),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        if ca is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            with open(ca, "rb") as file:
                self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), options)
        self.stub = kvstore_pb2_grpc.KVStoreStub(self._channel)
        self._metadata = [("authorization", "Bearer " + token)] if token else []
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
        while True:
            options = messages.ReadOptions(columns=_names(columns), versions=versions, marker=marker)
            answer = self._read(
                self.stub.GetRow, messages.GetRowRequest(dataset=dataset, row=_bytes(row), options=options)
            )
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

    def scan_rows(self, dataset, start="", end="", columns=None, versions=1):
        """Yields (row key, {column: [cells]}) for each row of [start, end), in order on an embedded store."""
        request = messages.ScanRowsRequest(
            dataset=dataset,
            range=messages.RowRange(start=_bytes(start), end=_bytes(end)),
            columns=_names(columns),
            versions=versions,
        )
        key, found = None, {}
        for answer in self.stub.ScanRows(request, metadata=self._metadata):
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
        return self._read(self.stub.GetObject, messages.GetObjectRequest(dataset=dataset, id=object_id)).object

    def get_objects(self, dataset, ids):
        """The objects in the order asked; None for one that there is not."""
        request = messages.GetObjectsRequest(dataset=dataset, ids=ids)
        found = []
        for answer in self.stub.GetObjects(request, metadata=self._metadata, timeout=self._timeout_s):
            found.extend(None if r.HasField("error") else r.object for r in answer.results)
        return found

    def update_object(self, dataset, object_id, merge_patch):
        """Applies a JSON merge patch (RFC 7396); the object as written."""
        request = messages.UpdateObjectRequest(dataset=dataset, id=object_id, merge_patch=_bytes(merge_patch))
        return self._write(self.stub.UpdateObject, request).object

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
            for entry in answer.entries:
                yield entry.to, entry.sequence
            marker = answer.marker
            if not marker:
                return

    # ---- attempts ----

    def _read(self, method, request):
        return self._repeat(method, request, writes=False)

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
