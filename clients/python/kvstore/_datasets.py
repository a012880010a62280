"""Calls on datasets."""

import difflib

import grpc

from kvstore import _checks
from kvstore._errors import Cancelled, InvalidArgument
from kvstore._types import Compaction, Dataset, Stats
from kvstore.v1 import kvstore_pb2 as messages

SHAPES = {"rows": 1, "objects": 2, "mappings": 3}
DURABILITIES = {"process": 1, "machine": 2}
COMPRESSIONS = {"none": 1, "lz4": 2, "zstd": 3}


def _refuse_unknown(unknown, known):
    for field in unknown:
        near = difflib.get_close_matches(field, known, 1, 0.3)
        hint = f"; do you mean {near[0]}" if near else ""
        raise InvalidArgument(f"{field}: is none of the settings {', '.join(known)}{hint}")


def _dataset(message, bad):
    def name(field, names, default):
        value = getattr(message, field) or names[default]
        for known, number in names.items():
            if number == value:
                return known
        raise bad(f"answered a dataset whose {field} has the number {value}, which this client does not know")

    return Dataset(
        name=message.name,
        shape=name("shape", SHAPES, "rows"),
        backend=message.backend,
        type=message.type,
        max_versions=message.max_versions if message.HasField("max_versions") else 1,
        ttl_ms=message.ttl_ms,
        durability=name("durability", DURABILITIES, "process"),
        compression=name("compression", COMPRESSIONS, "lz4"),
        blob_threshold=message.blob_threshold,
        engine=message.engine,
        incarnation=message.incarnation,
        table=message.table,
    )


class Datasets:
    def create_dataset(
        self,
        name,
        shape="rows",
        *,
        backend="",
        type=None,
        max_versions=None,
        ttl_ms=None,
        durability="process",
        compression="lz4",
        blob_threshold=0,
        engine="",
        incarnation=0,
        timeout_s=None,
        **unknown,
    ):
        """Creates an empty dataset. AlreadyExists if the name, or the type number of objects, is taken.

        name            1 to 48 letters, digits, "_", "-", "."; the first a letter, a digit or "_".
        shape           "rows", "objects" or "mappings".
        backend         one of the server's; "": its default one.
        type            of objects: the type number in their IDs, 1..1023; None: the lowest free one.
        max_versions    of rows: visible cells a column; 0: all; None: 1.
        ttl_ms          of rows: a cell expires when now > its timestamp + ttl_ms; None or 0: never.
        durability      what an acknowledged write survives: "process": kill -9; "machine": also power loss.
        compression     of the files of an embedded store: "none", "lz4" or "zstd".
        blob_threshold  values of at least so many bytes are kept apart from the keys; 0: none.
        engine          of a backend that has several ("innodb", "myrocks"); "": its default one.
        incarnation     0: chosen by the server. Else creating the dataset that has it already is no error.
        """
        _refuse_unknown(
            unknown,
            "backend type max_versions ttl_ms durability compression blob_threshold engine incarnation".split(),
        )
        dataset = messages.Dataset(
            name=_checks.text("name", name),
            shape=_checks.choice("shape", shape, SHAPES),
            backend=_checks.text("backend", backend),
            type=0 if type is None else _checks.number("type", type, 1, 1023),
            max_versions=_checks.number("max_versions", max_versions, 0, _checks.MAX_UINT32, default=1),
            durability=_checks.choice("durability", durability, DURABILITIES),
            compression=_checks.choice("compression", compression, COMPRESSIONS),
            blob_threshold=_checks.number("blob_threshold", blob_threshold, 0, _checks.MAX_UINT64),
            engine=_checks.text("engine", engine),
            incarnation=_checks.number("incarnation", incarnation, 0, _checks.MAX_UINT64),
        )
        if ttl_ms is not None:
            dataset.ttl_ms = _checks.timestamp("ttl_ms", ttl_ms)
        request = messages.CreateDatasetRequest(dataset=dataset)
        self._caller.write("CreateDataset", request, self._caller.deadline(timeout_s))

    def alter_dataset(
        self, name, *, max_versions=None, ttl_ms=None, durability=None, timeout_s=None, **unknown
    ):
        """Changes those settings that are given; they hold for calls that begin after this one.

        Lowering max_versions or ttl_ms hides cells at once. Raising one may show again what is not removed yet.
        """
        _refuse_unknown(unknown, ["max_versions", "ttl_ms", "durability"])
        request = messages.AlterDatasetRequest(dataset=_checks.text("name", name))
        if max_versions is not None:
            request.max_versions = _checks.number("max_versions", max_versions, 0, _checks.MAX_UINT32)
        if ttl_ms is not None:
            request.ttl_ms = _checks.timestamp("ttl_ms", ttl_ms)
        if durability is not None:
            request.durability = _checks.choice("durability", durability, DURABILITIES)
        self._caller.write("AlterDataset", request, self._caller.deadline(timeout_s))

    def drop_dataset(self, name, *, incarnation=0, timeout_s=None):
        """Removes a dataset and all of its data.

        incarnation  drop it only if it is this one (Dataset.incarnation); 0: whichever has the name.
        """
        request = messages.DropDatasetRequest(
            dataset=_checks.text("name", name),
            incarnation=_checks.number("incarnation", incarnation, 0, _checks.MAX_UINT64),
        )
        self._caller.write("DropDataset", request, self._caller.deadline(timeout_s))

    def get_dataset(self, name, *, timeout_s=None):
        """The Dataset of that name."""
        request = messages.GetDatasetRequest(dataset=_checks.text("name", name))
        found = self._caller.read("GetDataset", request, self._caller.deadline(timeout_s)).dataset
        if found.name != name:
            raise self._caller.bad("answered with another dataset")
        return _dataset(found, self._caller.bad)

    def list_datasets(self, *, timeout_s=None):
        """A Dataset for each one that the caller may read, by name."""
        answer = self._caller.read("ListDatasets", messages.ListDatasetsRequest(), self._caller.deadline(timeout_s))
        return [_dataset(found, self._caller.bad) for found in answer.datasets]

    def get_stats(self, name, *, timeout_s=None):
        """Rough sizes of a dataset: Stats."""
        request = messages.GetStatsRequest(dataset=_checks.text("name", name))
        answer = self._caller.read("GetStats", request, self._caller.deadline(timeout_s))
        return Stats(answer.approximate_bytes, answer.approximate_entries)

    def compact(self, name, progress=None, *, timeout_s=None):
        """Removes expired and surplus cells from disk now rather than in time: Compaction. No read changes its answer.

        progress   called now and then with (bytes done, bytes in all, which is an estimate). If it returns False the
                   work is stopped: Cancelled; what was done stays done.
        timeout_s  None: as long as it takes.

        It is not begun again if its connection is lost; that does no harm.
        """
        request = messages.CompactRequest(dataset=_checks.text("name", name))
        stream = self._caller.start("Compact", request, self._caller.deadline_if_given(timeout_s))
        result = None
        try:
            for answer in stream:
                if answer.HasField("result"):
                    found = answer.result
                    result = Compaction(
                        found.bytes_before, found.bytes_after, found.expired_cells, found.surplus_cells
                    )
                elif progress is not None and progress(answer.progress.done, answer.progress.total) is False:
                    raise Cancelled("was stopped; what was done stays done")
        except grpc.RpcError as error:
            raise self._caller.judge(error, writes=False)[1] from error
        finally:
            stream.cancel()
        if result is None:
            raise self._caller.bad("ended a compaction without a result")
        return result

    def get_metrics(self, *, timeout_s=None):
        """What the server counts, as /metrics shows it: text in the format of Prometheus."""
        return self._caller.read("GetMetrics", messages.GetMetricsRequest(), self._caller.deadline(timeout_s)).text
