"""Calls on reports themselves: creating, describing, deleting, upkeep."""

from collections.abc import Callable
from typing import Any

import grpc

from kvstore import _checks
from kvstore._errors import BadAnswer, InvalidArgument
from kvstore._report_queries import ReportQueries, names
from kvstore._report_times import MAX_TIME, length_ms, time_ms
from kvstore._report_types import Length, Metric, MetricPage, Report, ReportCompaction, Rollup, RollupsMade, SegmentKey, Time
from kvstore._report_writes import ReportWrites
from kvstore._types import Several
from kvstore.v1 import reports_pb2 as messages

KINDS = {
    "value": messages.METRIC_KIND_VALUE,
    "distinct": messages.METRIC_KIND_DISTINCT,
    "distribution": messages.METRIC_KIND_DISTRIBUTION,
}
_NAMES_OF_KINDS = {number: name for name, number in KINDS.items()}

# In the class below, `list` is a method.
_Names = list[str]


def _key(field: str, value: str | SegmentKey) -> messages.SegmentKey:
    key = SegmentKey(value) if isinstance(value, str) else value
    if not isinstance(key, SegmentKey):
        raise InvalidArgument(f"{field}: is of type {type(value).__name__}; it is a name or a kvstore.SegmentKey")
    name = _checks.text(f"{field}.name", key.name)
    if key.default is None:
        return messages.SegmentKey(name=name)
    return messages.SegmentKey(name=name, default_value=_checks.text(f"{field}.default", key.default))


def _metric(field: str, value: str | Metric) -> messages.Metric:
    metric = Metric(value) if isinstance(value, str) else value
    if not isinstance(metric, Metric):
        raise InvalidArgument(f"{field}: is of type {type(value).__name__}; it is a name or a kvstore.Metric")
    kind = _checks.choice(f"{field}.kind", metric.kind, KINDS)
    return messages.Metric(name=_checks.text(f"{field}.name", metric.name), kind=kind)


def _rollup(value: Rollup) -> messages.Rollup:
    if not isinstance(value, Rollup):
        raise InvalidArgument(f"rollups: is of type {type(value).__name__}; it is a kvstore.Rollup(keys, step)")
    return messages.Rollup(keys=names("rollups.keys", value.keys), step_ms=length_ms("rollups.step", value.step))


def _several(field: str, value: Any) -> list[Any]:
    """Returns the entries of a list that may be empty."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InvalidArgument(f"{field}: is of type {type(value).__name__}; it is a list")
    return list(value)


def _report_of(answers: list[messages.GetReportResponse], name: str, bad: Callable[[str], BadAnswer]) -> Report:
    """Puts the messages of an answer together."""
    if not answers or answers[0].report.name != name:
        raise bad("answered with another report")
    first = answers[0].report
    metrics = [metric for answer in answers for metric in answer.report.metrics]
    if any(metric.kind not in _NAMES_OF_KINDS for metric in metrics):
        raise bad("answered a metric of a kind that this client does not know")
    segment_values: dict[str, list[str]] = {}
    for answer in answers:
        for more in answer.segment_values:
            segment_values.setdefault(more.key, []).extend(more.values)
    return Report(
        name=first.name,
        id=first.id,
        segment_keys=[
            SegmentKey(key.name, key.default_value if key.HasField("default_value") else None) for key in first.keys
        ],
        metrics=[Metric(metric.name, _NAMES_OF_KINDS[metric.kind]) for metric in metrics],
        resolution_ms=first.resolution_ms,
        period_s=first.period_s,
        salts=first.salts,
        retention_ms=first.retention_ms,
        rollups=[Rollup(tuple(rollup.keys), rollup.step_ms) for rollup in first.rollups],
        segment_values=segment_values,
    )


class Reports(ReportQueries, ReportWrites):
    async def create(
        self,
        report: str,
        segment_keys: Several[str | SegmentKey] = (),
        metrics: Several[str | Metric] = (),
        *,
        resolution: Length = "1s",
        period: Length = "30d",
        salts: int = 4,
        retention: Length = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Creates a report, and the dataset if there is none yet. AlreadyExists if there is a report of that name.

        report        1 to 256 bytes of UTF-8.
        segment_keys  its dimensions, at most 16: names, or SegmentKeys with a default.
        metrics       names of metrics of kind "value", or Metrics.
        resolution    times of points are multiples of this.
        period        the stretch of time that one row holds, a multiple of the resolution; fixed for good.
        salts         1 to 64: rows for each period, which are read in parallel; fixed for good.
        retention     points older than this are gone; 0: they stay.
        """
        period_ms = length_ms("period", period)
        if period_ms % 1000:
            raise InvalidArgument("period: must be a whole number of seconds")
        made = messages.Report(
            name=_checks.text("report", report),
            resolution_ms=length_ms("resolution", resolution),
            period_s=period_ms // 1000,
            salts=_checks.number("salts", salts, 1, 64),
            retention_ms=length_ms("retention", retention, zero=True),
            keys=[_key(f"segment_keys[{at}]", one) for at, one in enumerate(_several("segment_keys", segment_keys))],
            metrics=[_metric(f"metrics[{at}]", one) for at, one in enumerate(_several("metrics", metrics))],
        )
        request = messages.CreateReportRequest(dataset=self._dataset, report=made)
        await self._caller.write("CreateReport", request, self._caller.deadline(timeout_s))

    async def alter(
        self,
        report: str,
        *,
        add_segment_key: SegmentKey | None = None,
        add_metrics: Several[str | Metric] = (),
        retention: Length | None = None,
        rollups: Several[Rollup] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Makes the changes that are given, or as many as it can before the first that fails.

        add_segment_key  with a default, which the points have that are there already.
        add_metrics      names of metrics of kind "value", or Metrics. One that exists with that kind is no error.
        retention        points older than this are gone; 0: they stay.
        rollups          all Rollups that the report is to have from now on; the others are removed.
        """
        request = messages.AlterReportRequest(dataset=self._dataset, report=_checks.text("report", report))
        if add_segment_key is not None:
            request.add_key.CopyFrom(_key("add_segment_key", add_segment_key))
        for at, one in enumerate(_several("add_metrics", add_metrics)):
            request.add_metrics.append(_metric(f"add_metrics[{at}]", one))
        if retention is not None:
            request.retention_ms = length_ms("retention", retention, zero=True)
        if rollups is not None:
            wanted = [_rollup(one) for one in _several("rollups", rollups)]
            request.rollups.CopyFrom(messages.Rollups(rollups=wanted))
        await self._caller.write("AlterReport", request, self._caller.deadline(timeout_s))

    async def drop(self, report: str, *, timeout_s: float | None = None) -> None:
        """Removes a report with all of its points."""
        request = messages.DropReportRequest(dataset=self._dataset, report=_checks.text("report", report))
        await self._caller.write("DropReport", request, self._caller.deadline(timeout_s))

    async def list(self, *, timeout_s: float | None = None) -> _Names:
        """Returns the names of the reports that the caller may read, sorted."""
        request = messages.ListReportsRequest(dataset=self._dataset)
        answers = await self._caller.read_all("ListReports", request, self._caller.deadline(timeout_s))
        return [name for answer in answers for name in answer.reports]

    async def info(
        self, report: str, metrics: Several[str] = (), *, timeout_s: float | None = None
    ) -> Report:
        """Returns a Report with those of `metrics` that exist. It reads nothing else, so that it is fast however many
        metrics and values the report has."""
        request = messages.GetReportRequest(
            dataset=self._dataset, report=_checks.text("report", report), metrics=names("metrics", metrics)
        )
        return await self._get(request, timeout_s)

    async def describe(
        self, report: str, metrics: Several[str] | None = None, *, timeout_s: float | None = None
    ) -> Report:
        """Returns a Report with the values that its segment keys have had.

        metrics  those of these that exist are in it; None: all.
        """
        request = messages.GetReportRequest(
            dataset=self._dataset, report=_checks.text("report", report), segment_values=True
        )
        if metrics is None:
            request.all_metrics = True
        else:
            request.metrics.extend(names("metrics", metrics))
        return await self._get(request, timeout_s)

    async def list_metrics(
        self,
        report: str,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = 1000,
        timeout_s: float | None = None,
    ) -> MetricPage:
        """Returns a page of the metrics whose names begin with `prefix`, sorted by the bytes of their names. It reads
        the page alone, however many metrics the report has.

        after  the last name of the page before.
        limit  1 to 5,000 metrics.
        """
        request = messages.ListMetricsRequest(
            dataset=self._dataset,
            report=_checks.text("report", report),
            prefix=_checks.text("prefix", prefix),
            after=_checks.text("after", after),
            limit=_checks.number("limit", limit, 1, 5000),
        )
        answer: messages.ListMetricsResponse = await self._caller.read(
            "ListMetrics", request, self._caller.deadline(timeout_s)
        )
        if any(metric.kind not in _NAMES_OF_KINDS for metric in answer.metrics):
            raise self._caller.bad("answered a metric of a kind that this client does not know")
        if answer.more and not answer.metrics:
            raise self._caller.bad("answered a page of metrics that does not end")
        return MetricPage([Metric(metric.name, _NAMES_OF_KINDS[metric.kind]) for metric in answer.metrics], answer.more)

    async def delete(
        self, report: str, metrics: Several[str], from_: Time, to: Time, *, timeout_s: float | None = None
    ) -> int:
        """Deletes the points of some metrics in [from_, to), as they are at this moment. Returns how many rows were
        touched."""
        request = messages.DeletePointsRequest(
            dataset=self._dataset,
            report=_checks.text("report", report),
            metrics=[_checks.text("metrics", one) for one in _checks.listed("metrics", metrics)],
            to=time_ms("to", to, most=MAX_TIME + 1),
        )
        # The name of this field is a keyword of Python.
        setattr(request, "from", time_ms("from_", from_, most=MAX_TIME + 1))
        deadline = self._caller.deadline(timeout_s)
        answer: messages.DeletePointsResponse = await self._caller.write("DeletePoints", request, deadline)
        return answer.rows

    async def compact(self, report: str, *, timeout_s: float | None = None) -> ReportCompaction:
        """Merges what was written in many batches, and removes what is past the report's retention. No query changes
        its answer. Returns a ReportCompaction.

        timeout_s  None: no limit.

        The call is not retried when its connection is lost; that does no harm.
        """
        request = messages.CompactReportRequest(dataset=self._dataset, report=_checks.text("report", report))
        found = await self._upkeep("CompactReport", request, timeout_s)
        return ReportCompaction(
            found.rows,
            found.chunks_merged,
            found.chunks_written,
            found.rows_expired,
            found.bytes_before,
            found.bytes_after,
        )

    async def make_rollups(self, report: str, *, timeout_s: float | None = None) -> RollupsMade:
        """Makes the report's roll-ups again where they are not up to date. No query changes its answer. Returns a
        RollupsMade. The timeout, and retries, are as for compact.
        """
        request = messages.MakeRollupsRequest(dataset=self._dataset, report=_checks.text("report", report))
        found = await self._upkeep("MakeRollups", request, timeout_s)
        return RollupsMade(found.rows, found.rows_current, found.rows_written, found.bytes_written)

    async def _get(self, request: messages.GetReportRequest, timeout_s: float | None) -> Report:
        answers = await self._caller.read_all("GetReport", request, self._caller.deadline(timeout_s))
        return _report_of(answers, request.report, self._caller.bad)

    async def _upkeep(self, method: str, request: Any, timeout_s: float | None) -> Any:
        """Returns the result of work that may take long."""
        stream = self._caller.stream(method, request, self._caller.deadline_if_given(timeout_s))
        result = None
        try:
            while (answer := await stream.read()) is not None:
                if answer.HasField("result"):
                    result = answer.result
        except grpc.RpcError as error:
            raise self._caller.judge(error, writes=False)[1] from error
        finally:
            stream.cancel()
        if result is None:
            raise self._caller.bad("ended its work without a result")
        return result
