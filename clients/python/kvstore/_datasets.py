"""Calls on datasets."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Never

import grpc

from kvstore import _checks
from kvstore._caller import Calling
from kvstore._errors import BadAnswer, Cancelled, InvalidArgument
from kvstore._types import Compaction, Dataset, Stats
from kvstore.v1 import kvstore_pb2 as messages

SHAPES = {"rows": messages.SHAPE_ROWS, "objects": messages.SHAPE_OBJECTS, "mappings": messages.SHAPE_MAPPINGS}
DURABILITIES = {"process": messages.DURABILITY_PROCESS, "machine": messages.DURABILITY_MACHINE}
COMPRESSIONS = {
    "none": messages.COMPRESSION_NONE,
    "lz4": messages.COMPRESSION_LZ4,
    "zstd": messages.COMPRESSION_ZSTD,
}


def _refuse_unknown(unknown: Iterable[str], known: list[str]) -> None:
    for field in unknown:
        near = difflib.get_close_matches(field, known, 1, 0.3)
        hint = f"; do you mean {near[0]}" if near else ""
        raise InvalidArgument(f"{field}: is none of the settings {', '.join(known)}{hint}")


def _dataset(message: messages.Dataset, bad: Callable[[str], BadAnswer]) -> Dataset:
    def name(field: str, names: Mapping[str, int], default: str) -> str:
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
        keep_changes_ms=message.keep_changes_ms,
    )


class Datasets(Calling):
    async def create_dataset(
        self,
        /,
        name: str,
        shape: str = "rows",
        *,
        backend: str = "",
        type: int | None = None,
        max_versions: int | None = None,
        ttl_ms: int | None = None,
        durability: str = "process",
        compression: str = "lz4",
        blob_threshold: int = 0,
        engine: str = "",
        incarnation: int = 0,
        keep_changes_ms: int | None = None,
        timeout_s: float | None = None,
        **unknown: Never,
    ) -> None:
        """Creates an empty dataset. AlreadyExists if the name, or the type number of objects, is taken.

        name            1 to 48 letters, digits, "_", "-", "."; the first a letter, a digit or "_".
        shape           "rows", "objects" or "mappings".
        backend         a backend of the server; "": its default one.
        type            objects: the type number in their IDs, 1..1023; None: the lowest free one.
        max_versions    rows: how many cells of a column are visible; 0: all; None: 1.
        ttl_ms          rows: a cell expires when now > its timestamp + ttl_ms; None or 0: never.
        durability      what an acknowledged write survives: "process": kill -9; "machine": also a power loss.
        compression     compression of an embedded store's files: "none", "lz4" or "zstd".
        blob_threshold  values of at least this many bytes are stored apart from the keys; 0: none.
        engine          storage engine of a backend that has several ("innodb", "myrocks"); "": its default one.
        keep_changes_ms
                        how long changes are kept for read_changes; None or 0: they are not recorded.
        incarnation     0: chosen by the server. Otherwise, creating the dataset that already has it is not an error.
        """
        _refuse_unknown(
            unknown,
            "backend type max_versions ttl_ms durability compression blob_threshold engine incarnation "
            "keep_changes_ms".split(),
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
        if keep_changes_ms is not None:
            dataset.keep_changes_ms = _checks.timestamp("keep_changes_ms", keep_changes_ms)
        request = messages.CreateDatasetRequest(dataset=dataset)
        await self._caller.write("CreateDataset", request, self._caller.deadline(timeout_s))

    async def alter_dataset(
        self,
        /,
        name: str,
        *,
        max_versions: int | None = None,
        ttl_ms: int | None = None,
        durability: str | None = None,
        keep_changes_ms: int | None = None,
        timeout_s: float | None = None,
        **unknown: Never,
    ) -> None:
        """Changes the given settings; they apply to calls that begin after this one.

        Lowering max_versions or ttl_ms hides cells at once. Raising one may make cells visible again that were not
        removed yet.
        """
        _refuse_unknown(unknown, ["max_versions", "ttl_ms", "durability", "keep_changes_ms"])
        request = messages.AlterDatasetRequest(dataset=_checks.text("name", name))
        if max_versions is not None:
            request.max_versions = _checks.number("max_versions", max_versions, 0, _checks.MAX_UINT32)
        if ttl_ms is not None:
            request.ttl_ms = _checks.timestamp("ttl_ms", ttl_ms)
        if durability is not None:
            request.durability = _checks.choice("durability", durability, DURABILITIES)
        if keep_changes_ms is not None:
            request.keep_changes_ms = _checks.timestamp("keep_changes_ms", keep_changes_ms)
        await self._caller.write("AlterDataset", request, self._caller.deadline(timeout_s))

    async def drop_dataset(self, name: str, *, incarnation: int = 0, timeout_s: float | None = None) -> None:
        """Removes a dataset and all of its data.

        incarnation  drop the dataset only if it has this incarnation (Dataset.incarnation); 0: whichever has the name.
        """
        request = messages.DropDatasetRequest(
            dataset=_checks.text("name", name),
            incarnation=_checks.number("incarnation", incarnation, 0, _checks.MAX_UINT64),
        )
        await self._caller.write("DropDataset", request, self._caller.deadline(timeout_s))

    async def get_dataset(self, name: str, *, timeout_s: float | None = None) -> Dataset:
        """Returns the Dataset of that name."""
        request = messages.GetDatasetRequest(dataset=_checks.text("name", name))
        deadline = self._caller.deadline(timeout_s)
        answer: messages.GetDatasetResponse = await self._caller.read("GetDataset", request, deadline)
        if answer.dataset.name != name:
            raise self._caller.bad("answered with another dataset")
        return _dataset(answer.dataset, self._caller.bad)

    async def list_datasets(self, *, timeout_s: float | None = None) -> list[Dataset]:
        """Returns the Datasets that the caller may read, ordered by name."""
        request, deadline = messages.ListDatasetsRequest(), self._caller.deadline(timeout_s)
        answer: messages.ListDatasetsResponse = await self._caller.read("ListDatasets", request, deadline)
        return [_dataset(found, self._caller.bad) for found in answer.datasets]

    async def get_stats(self, name: str, *, timeout_s: float | None = None) -> Stats:
        """Returns rough sizes of a dataset as Stats."""
        request = messages.GetStatsRequest(dataset=_checks.text("name", name))
        deadline = self._caller.deadline(timeout_s)
        answer: messages.GetStatsResponse = await self._caller.read("GetStats", request, deadline)
        return Stats(answer.approximate_bytes, answer.approximate_entries)

    async def compact(
        self,
        name: str,
        progress: Callable[[int, int], object] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Compaction:
        """Removes expired and surplus cells from disk now rather than in time; no read changes its answer. Returns a
        Compaction.

        progress   called now and then with (bytes done, estimated bytes in all). If it returns False the work stops
                   with Cancelled; what was done stays done.
        timeout_s  None: no limit.

        The call is not retried when its connection is lost; that does no harm.
        """
        request = messages.CompactRequest(dataset=_checks.text("name", name))
        stream = self._caller.stream("Compact", request, self._caller.deadline_if_given(timeout_s))
        result = None
        try:
            while (answer := await stream.read()) is not None:
                if answer.HasField("result"):
                    found = answer.result
                    result = Compaction(
                        found.bytes_before, found.bytes_after, found.expired_cells, found.surplus_cells
                    )
                elif progress is not None and progress(answer.progress.done, answer.progress.total) is False:
                    raise Cancelled("the compaction was stopped; what it has done stays done")
        except grpc.RpcError as error:
            raise self._caller.judge(error, writes=False)[1] from error
        finally:
            stream.cancel()
        if result is None:
            raise self._caller.bad("ended a compaction without a result")
        return result

    async def get_metrics(self, *, timeout_s: float | None = None) -> str:
        """Returns the server's metrics as /metrics shows them: text in the format of Prometheus."""
        request, deadline = messages.GetMetricsRequest(), self._caller.deadline(timeout_s)
        answer: messages.GetMetricsResponse = await self._caller.read("GetMetrics", request, deadline)
        return answer.text
