"""A Python client (KV_TEST_CLIENT) against a server whose answers do not fit the requests; and tokens that are invalid, or
must not be shown."""

import itertools
import logging
from concurrent import futures

import grpc
import kvstore
from kvstore import messages
from kvstore.v1 import kvstore_pb2_grpc
from python_clients import connect


def packed(**fields):
    good = {"name_bytes": [1], "cells": [1], "timestamps": [5], "value_bytes": [1], "bytes": b"cv"}
    return messages.PackedItems(**{**good, **fields})


# Each answer has one part that does not fit the others.
MALFORMED = {
    b"few cells": packed(cells=[]),
    b"many cells": packed(cells=[2]),
    b"no cells": packed(cells=[0, 1], name_bytes=[0, 1]),
    b"huge count": packed(cells=[(1 << 32) - 1]),
    b"few times": packed(timestamps=[]),
    b"few sizes": packed(value_bytes=[]),
    b"long name": packed(name_bytes=[3]),
    b"long value": packed(value_bytes=[2]),
    b"huge value": packed(value_bytes=[(1 << 32) - 1]),
    b"more bytes": packed(bytes=b"cvx"),
    b"fewer bytes": packed(bytes=b"c"),
}


class Hostile(kvstore_pb2_grpc.KVStoreServicer):
    def GetServer(self, request, context):
        return messages.GetServerResponse(instance=b"hostile")

    def GetDataset(self, request, context):
        if request.dataset == "shape":
            return messages.GetDatasetResponse(dataset=messages.Dataset(name="shape", shape=9))
        return messages.GetDatasetResponse(dataset=messages.Dataset(name="other"))

    def GetRow(self, request, context):
        item = messages.Item(column=b"c", cells=[messages.Cell(timestamp=1)])
        if request.row == b"same":
            return messages.GetRowResponse(items=[item], marker=b"m")
        if request.row == b"endless":
            self.pages = getattr(self, "pages", 0) + 1
            return messages.GetRowResponse(items=[item], marker=b"%d" % self.pages)
        if request.row == b"wide":
            return messages.GetRowResponse(items=[item] * (request.options.limit + 1))
        if request.row == b"compressed":
            context.set_compression(grpc.Compression.Gzip)
            return messages.GetRowResponse(marker=bytes(100_000_000))
        if request.row == b"cells":
            count = 1_000_000
            return messages.GetRowResponse(
                packed=packed(cells=[count], timestamps=[1] * count, value_bytes=[0] * count, bytes=b"c")
            )
        if request.row in MALFORMED:
            return messages.GetRowResponse(packed=MALFORMED[request.row])
        if request.row == b"good":
            return messages.GetRowResponse(packed=packed())
        return messages.GetRowResponse(marker=b"m")

    def GetRows(self, request, context):
        result = messages.GetRowsResponse.Result(packed=MALFORMED.get(request.dataset.encode()))
        count = {"many": 3, "few": 1, "none": 0}.get(request.dataset, 2)
        yield messages.GetRowsResponse(results=[result] * count)

    def PutRows(self, request, context):
        return messages.PutRowsResponse(results=[messages.PutRowsResponse.Result()] * 3)

    def ImportRows(self, requests, context):
        next(requests)
        yield messages.PutRowsResponse(results=[messages.PutRowsResponse.Result()])

    def DeleteRows(self, request, context):
        return messages.DeleteRowsResponse()

    def ScanRows(self, request, context):
        row = messages.ScanRowsResponse.Row(key=b"r", continues=request.dataset == "endless")
        rows = [row] if request.dataset in ("endless", "many") else []
        return itertools.repeat(messages.ScanRowsResponse(rows=rows * 3))

    def Compact(self, request, context):
        yield messages.CompactResponse(progress=messages.CompactResponse.Progress(done=1, total=2))

    def ListMapping(self, request, context):
        if request.dataset == "many":
            return messages.ListMappingResponse(entries=[messages.MappingEntry()] * (request.options.limit + 1))
        return messages.ListMappingResponse(marker=b"m")

    def ListObjects(self, request, context):
        result = messages.ListObjectsResponse.Result(entry=messages.MappingEntry(to=1), object=messages.Object(id=2))
        return messages.ListObjectsResponse(results=[result] if request.dataset == "other" else [], marker=b"m")

    def ScanObjects(self, request, context):
        ids = {"many": [1] * (request.limit + 1), "order": [8, 7], "range": [4]}.get(request.dataset, [])
        return messages.ScanObjectsResponse(objects=[messages.Object(id=one) for one in ids], marker=b"m")

    def ScanMappings(self, request, context):
        ids = {"many": [1] * (request.limit + 1), "order": [7, 7], "range": [20]}.get(request.dataset, [])
        entries = [messages.ScanMappingsResponse.Entry(**{"from": one}) for one in ids]
        return messages.ScanMappingsResponse(entries=entries, marker=b"m")

    def GetObject(self, request, context):
        return messages.GetObjectResponse(object=messages.Object(id=2))

    def UpdateObject(self, request, context):
        return messages.UpdateObjectResponse(object=messages.Object(id=2))

    def GetObjects(self, request, context):
        count = {"many": 100_000, "few": 1, "other": 2}[request.dataset]
        yield messages.GetObjectsResponse(
            results=[messages.GetObjectsResponse.Result(object=messages.Object(id=1))] * count
        )


def fails(error, text, call):
    try:
        found = call()
    except error as caught:
        assert text in str(caught), caught
        return caught
    raise SystemExit(f"it was taken: {found}")


def test_answers(store):
    def bad(text, call, in_doubt=False):
        error = fails(kvstore.BadAnswer, text, call)
        assert error.code == "INTERNAL" and error.in_doubt == in_doubt, error

    writes = [kvstore.RowWrite("r", {"c": "v"})] * 2
    bad("does not go on", lambda: store.get_row("d", "same"))
    bad("does not go on", lambda: list(store.iter_row("d", "same")))
    bad("does not go on", lambda: store.get_row_page("d", "r", marker=b"m"))
    bad("does not go on", lambda: store.get_row("d", "empty"))
    bad("more entries than a page", lambda: store.get_row_page("d", "wide"))
    assert store.get_row("d", "good") == {b"c": [kvstore.Cell(5, b"v")]}
    for row in MALFORMED:
        bad("the server's answer: packed items that do not fit together", lambda: store.get_row("d", row))
    bad("do not fit together", lambda: store.get_rows("few times", ["r", "s"]))
    bad("more cells", lambda: store.get_row("d", "cells"))
    bad("more entries", lambda: store.get_rows("many", ["r", "s"]))
    bad("fewer entries", lambda: store.get_rows("few", ["r", "s"]))
    bad("without entries", lambda: store.get_rows("none", ["r", "s"]))
    bad("more entries", lambda: store.put_rows("d", writes), in_doubt=True)
    bad("fewer entries", lambda: store.put_rows("d", writes * 1001), in_doubt=True)
    bad("fewer entries", lambda: store.delete_rows("d", ["r"]), in_doubt=True)
    bad("without rows", lambda: list(store.scan_rows("d")))
    bad("more rows", lambda: store.scan_page("many", limit=2))
    bad("without a result", lambda: store.compact("d"))
    fails(kvstore.Cancelled, "was stopped", lambda: store.compact("d", lambda done, total: False))
    bad("does not go on", lambda: list(store.list_mapping("d", 1)))
    bad("more entries", lambda: store.list_mapping_page("many", 1, limit=2))
    bad("does not go on", lambda: store.list_objects_page("d", 1))
    bad("another object", lambda: store.list_objects_page("other", 1))
    for scan, page in (
        (store.scan_objects, store.scan_objects_page),
        (store.scan_mappings, store.scan_mappings_page),
    ):
        bad("does not go on", lambda: list(scan("d")))
        bad("more entries", lambda: page("many", limit=2))
        bad("range or order", lambda: page("order"))
        bad("range or order", lambda: page("range", 5, 20))
    bad("another object", lambda: store.get_object("d", 1))
    bad("another object", lambda: store.update_object("d", 1, "{}"), in_doubt=True)
    bad("another object", lambda: store.get_objects("other", [1, 2]))
    bad("more entries", lambda: store.get_objects("many", [1, 1]))
    bad("fewer entries", lambda: store.get_objects("few", [1, 1]))
    bad("another dataset", lambda: store.get_dataset("d"))
    bad("shape has the number 9", lambda: store.get_dataset("shape"))
    fails(kvstore.DeadlineExceeded, "", lambda: list(store.scan_rows("endless", timeout_s=0.2)))
    fails(kvstore.DeadlineExceeded, "", lambda: store.get_row("d", "endless", timeout_s=0.2))
    fails(kvstore.DeadlineExceeded, "", lambda: list(store.iter_row("d", "endless", timeout_s=0.2)))
    # Either the header is refused or the message does not decode. An error with the unpacked size would show that
    # it was unpacked.
    error = fails(kvstore.Error, "", lambda: store.get_row("d", "compressed"))
    assert error.code in ("UNIMPLEMENTED", "INTERNAL"), error


def test_undecodable():
    """Bytes that are no message at all."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    one = grpc.unary_unary_rpc_method_handler(lambda request, context: b"\xff")
    several = grpc.unary_stream_rpc_method_handler(lambda request, context: iter([b"\xff"]))
    good = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    methods = {"GetRow": one, "PutRow": one, "GetServer": good, "ScanRows": several, "GetRows": several}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("kvstore.v1.KVStore", methods)])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    # gRPC by itself would show a stack trace when a message does not decode.
    logging.disable()
    with connect(address) as store:
        for call in (
            lambda: store.get_row("d", "r"),
            lambda: store.get_rows("d", ["r"]),
            lambda: list(store.scan_rows("d")),
        ):
            assert not fails(kvstore.Internal, "deserializing", call).in_doubt
        assert fails(kvstore.Internal, "deserializing", lambda: store.put_row("d", "r", {"c": "v"})).in_doubt
    logging.disable(logging.NOTSET)
    server.stop(None)


def test_tokens(address):
    for token in ("kv_ab\x01secret", "sécret", "\ufeff\ufeffsecret", "secret\n"):
        error = fails(ValueError, ", which is not a printable ASCII character", lambda: connect(address, token=token))
        assert isinstance(error, kvstore.InvalidArgument) and "secret" not in str(error), error
    connect(address, token="\ufeffsecret").close()
    for local in ("localhost:1", "[::1]:1", "127.3.2.1:1", "unix:/run/kv"):
        connect(local, token="secret").close()
    for remote in ("kv.example.com:1", "10.0.0.1:1", "[::]:1", "dns:///localhost:1", "localhost.example.com:1"):
        said = "is not encrypted, so anybody who sees its packets would have the token"
        fails(ValueError, said, lambda: connect(remote, token="secret"))
        connect(remote, token="secret", plain_token=True).close()
        connect(remote).close()


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    kvstore_pb2_grpc.add_KVStoreServicer_to_server(Hostile(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with connect(address) as store:
        test_answers(store)
    with connect(address, timeout_s=0.2) as store:
        fails(kvstore.DeadlineExceeded, "", lambda: store.get_row("d", "endless"))
    server.stop(None)
    test_undecodable()
    test_tokens(address)


if __name__ == "__main__":
    main()
