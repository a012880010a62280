"""Queries of reports."""

import math
import re
from collections.abc import Callable, Iterable, Mapping

from kvstore import _checks
from kvstore._errors import BadAnswer, InvalidArgument
from kvstore._report_times import MAX_TIME, compare_of, step_of, time_ms
from kvstore._report_types import (
    Expression,
    Filter,
    Length,
    PartCost,
    QueryCost,
    QueryResult,
    Series,
    Time,
    Top,
)
from kvstore._reporting import Reporting
from kvstore._types import Several
from kvstore.v1 import reports_pb2 as messages

FUNCTIONS = {
    "sum": messages.Function.KIND_SUM,
    "count": messages.Function.KIND_COUNT,
    "avg": messages.Function.KIND_AVG,
    "min": messages.Function.KIND_MIN,
    "max": messages.Function.KIND_MAX,
    "last": messages.Function.KIND_LAST,
    "distinct": messages.Function.KIND_DISTINCT,
}
FILLS = {"none": messages.FILL_NONE, "zero": messages.FILL_ZERO, "previous": messages.FILL_PREVIOUS}
_PERCENTILE = re.compile(r"p(\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_MAX_TOP = 100_000


def _function(field: str, name: str) -> messages.Function:
    if isinstance(name, str):
        if name in FUNCTIONS:
            return messages.Function(kind=FUNCTIONS[name])
        found = _PERCENTILE.fullmatch(name)
        if found and float(found[1]) <= 100:
            return messages.Function(kind=messages.Function.KIND_PERCENTILE, percentile=float(found[1]))
    raise InvalidArgument(f"{field}: is none of {', '.join(FUNCTIONS)}, and p0 to p100")


def names(field: str, value: Iterable[str]) -> list[str]:
    """Returns a list of names, which may be empty."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InvalidArgument(f"{field}: is of type {type(value).__name__}; it is a list of names")
    return [_checks.text(field, one) for one in value]


def _metric(value: str | Expression) -> messages.QueryMetric:
    if isinstance(value, Expression):
        name = _checks.text("metrics.name", value.name)
        return messages.QueryMetric(name=name, expression=_checks.text("metrics.expression", value.expression))
    return messages.QueryMetric(name=_checks.text("metrics", value))


def _filter(at: int, value: Filter) -> messages.QueryFilter:
    field = f"filters[{at}]"
    if not isinstance(value, Filter) or not isinstance(value.where, Mapping):
        raise InvalidArgument(f"{field}: is no kvstore.Filter({{segment key: values}}, name)")
    made = messages.QueryFilter(name=_checks.text(f"{field}.name", value.name))
    for key, values in value.where.items():
        match = made.where.add(key=_checks.text(f"{field}.where", key))
        if isinstance(values, str):
            if values != "*":
                raise InvalidArgument(f'{field}.where: is of type str; it is a list of values, or "*"')
            match.any = True
        else:
            match.values.extend(names(f"{field}.where", values))
    return made


def _top(value: Top) -> messages.QueryTop:
    if not isinstance(value, Top):
        raise InvalidArgument(f"top: is of type {type(value).__name__}; it is a kvstore.Top(n, by)")
    made = messages.QueryTop(n=_checks.number("top.n", value.n, 1, _MAX_TOP))
    if value.by is not None:
        made.by.CopyFrom(_function("top.by", value.by))
    return made


def _numbers(message: messages.Numbers, count: int, bad: Callable[[str], BadAnswer]) -> list[float]:
    integers, reals, is_real = list(message.integers), list(message.reals), list(message.is_real)
    if not all(map(math.isfinite, reals)):
        raise bad("answered a number that is not finite")
    if len(integers) + len(reals) != count:
        raise bad("answered points with more times than values, or fewer")
    if not is_real:
        if integers and reals:
            raise bad("answered numbers of two kinds that do not say which is which")
        return [*integers, *reals]
    if len(is_real) != count or sum(is_real) != len(reals):
        raise bad("answered numbers of two kinds that do not fit together")
    next_integer, next_real = iter(integers), iter(reals)
    return [next(next_real) if real else next(next_integer) for real in is_real]


def _points(message: messages.SeriesPoints, bad: Callable[[str], BadAnswer]) -> list[tuple[int, float]]:
    times = list(message.times)
    if any(later <= earlier for earlier, later in zip(times, times[1:])):
        raise bad("answered points that are not in the order of their times")
    return list(zip(times, _numbers(message.values, len(times), bad)))


def _cost(message: messages.QueryCost) -> QueryCost:
    return QueryCost(
        message.rows, message.chunks, message.chunks_skipped, message.bytes, message.from_rollups, message.ms
    )


def _series(
    message: messages.QueryReportResponse.Series, group_by: list[str], bad: Callable[[str], BadAnswer]
) -> Series:
    if len(message.segments) != len(group_by):
        raise bad("answered a series with other segments than were asked for")
    compared = _points(message.compared, bad) if message.HasField("compared") else None
    return Series(
        message.metric, message.filter, dict(zip(group_by, message.segments)), _points(message.points, bad), compared
    )


class ReportQueries(Reporting):
    async def query(
        self,
        report: str,
        metrics: Several[str | Expression],
        from_: Time,
        to: Time,
        *,
        step: Length | None = None,
        timezone: str = "UTC",
        filters: Several[Filter] = (),
        group_by: Several[str] = (),
        function: str = "sum",
        top: Top | None = None,
        fill: str = "none",
        compare_to: str | None = None,
        partial: bool = False,
        explain: bool = False,
        timeout_s: float | None = None,
    ) -> QueryResult:
        """Returns what a function makes of the points in [from_, to): a QueryResult, whose to_pandas() is a DataFrame.

        metrics     names of metrics, and Expressions over several.
        from_, to   ms since 1970; datetimes with a time zone; RFC 3339 texts; or dates: midnight in `timezone`.
        step        a value for each "15m", "6h", "1d", "1w", "1mo", ... (days and longer by the calendar of `timezone`,
                    timedeltas of a fixed length); None: one for the whole range.
        filters     Filters, at most 1,000, of each of which there are series; none: one that all series match.
        group_by    segment keys: a series for each combination of their values; none: one.
        function    "sum", "count", "avg", "min", "max", "last", "p50" (any percentile), or "distinct".
        top         a Top(n, by): only the greatest series of each metric and filter, in the order of their rank.
        fill        what a step without points is: "none" (left out), "zero", or "previous".
        compare_to  "-7d": each series is also asked for that much earlier, or later ("+7d").
        partial     leave out what cannot be reached, and say so (QueryResult.missing), instead of failing.
        explain     say what each part of the scan has cost (QueryResult.parts).

        Series are in the order of metrics, filters, then segments. Integers are exact. The query runs in the server, so
        that only its answer goes over the network. ResourceExhausted names a limit that it has passed.
        """
        timezone = _checks.text("timezone", timezone)
        group_by = names("group_by", group_by)
        request = messages.QueryReportRequest(
            dataset=self._dataset,
            report=_checks.text("report", report),
            metrics=[_metric(one) for one in _checks.listed("metrics", metrics)],
            to=time_ms("to", to, timezone, MAX_TIME + 1),
            time_zone=timezone,
            group_by=group_by,
            function=_function("function", function),
            fill=_checks.choice("fill", fill, FILLS),
            partial=_checks.flag("partial", partial),
            explain=_checks.flag("explain", explain),
        )
        # The name of this field is a keyword of Python.
        setattr(request, "from", time_ms("from_", from_, timezone, MAX_TIME + 1))
        if step is not None:
            request.step.CopyFrom(step_of("step", step))
        for at, one in enumerate(filters):
            request.filters.append(_filter(at, one))
        if top is not None:
            request.top.CopyFrom(_top(top))
        if compare_to is not None:
            compare, request.compare_later = compare_of(compare_to)
            request.compare.CopyFrom(compare)
        return await self._answer(request, group_by, self._caller.deadline(timeout_s))

    async def _answer(
        self, request: messages.QueryReportRequest, group_by: list[str], deadline: float
    ) -> QueryResult:
        bad = self._caller.bad
        answers = await self._caller.read_all("QueryReport", request, deadline)
        if not answers or not answers[-1].HasField("end") or any(one.HasField("end") for one in answers[:-1]):
            raise bad("ended an answer to a query before its end")
        series = [_series(one, group_by, bad) for answer in answers for one in answer.series]
        if any((one.compared is not None) != request.HasField("compare") for one in series):
            raise bad("answered a comparison that was not asked for, or not the one that was")
        end: messages.QueryReportResponse.End = answers[-1].end
        return QueryResult(
            series=series,
            cost=_cost(end.cost),
            partial=bool(end.missing),
            missing=list(end.missing),
            parts=[PartCost(part.metric, part.salt, _cost(part.cost)) for part in end.parts],
            group_by=group_by,
            timezone=request.time_zone,
        )
