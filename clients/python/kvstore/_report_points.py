"""Points as messages: cut into batches, in columns."""

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kvstore import _checks
from kvstore._errors import InvalidArgument
from kvstore._report_times import time_ms
from kvstore._report_types import Point
from kvstore._types import Text
from kvstore.v1 import reports_pb2 as messages

# A message has about this many at most; only a single point may have more. They depend on the points alone, so that a
# write that is repeated is cut at the same places.
_BATCH_POINTS = 50_000
_BATCH_BYTES = 4 << 20

_LEAST_INTEGER, _GREATEST_INTEGER = -(1 << 63), (1 << 63) - 1


class _Reals(list[float]):
    """The numbers of a distribution."""


class _Batch:
    """The points of one message."""

    def __init__(self) -> None:
        self.points = 0
        self._bytes = 0
        self._metrics: dict[str, int] = {}
        self._series: dict[tuple[Any, ...], int] = {}
        self._series_metrics: list[int] = []
        # For each segment key: its values with 1 + their indexes, and that number for each series.
        self._keys: dict[str, tuple[dict[str, int], list[int]]] = {}
        self._values = messages.ValuePoints()
        self._numbers: list[int | float] = []
        self._distincts = messages.DistinctPoints()
        self._distributions = messages.DistributionPoints()

    def full(self) -> bool:
        return self.points >= _BATCH_POINTS or self._bytes >= _BATCH_BYTES

    def add(self, field: str, point: Point) -> None:
        """Adds a point. InvalidArgument names the part of `field` that is wrong; then nothing is added."""
        time = time_ms(f"{field}.time", point.time)
        value = _value_of(f"{field}.value", point.value)
        series = self._series_of(field, point)
        self.points += 1
        self._bytes += 20
        if isinstance(value, (int, float)):
            self._values.series.append(series)
            self._values.times.append(time)
            self._numbers.append(value)
        elif isinstance(value, _Reals):
            self._distributions.series.append(series)
            self._distributions.times.append(time)
            self._distributions.counts.append(len(value))
            self._distributions.values.extend(value)
            self._bytes += 8 * len(value)
        else:
            self._distincts.series.append(series)
            self._distincts.times.append(time)
            self._distincts.counts.append(len(value))
            self._distincts.members.extend(value)
            self._bytes += sum(len(member) + 4 for member in value)

    def message(self, dataset: str, report: str, batch: str, add: bool) -> messages.WritePointsRequest:
        request = messages.WritePointsRequest(
            dataset=dataset,
            report=report,
            batch=batch,
            add=add,
            metrics=list(self._metrics),
            series_metrics=self._series_metrics,
        )
        for key, (values, of_series) in self._keys.items():
            request.keys.add(key=key, values=list(values), series_values=of_series)
        if self._numbers:
            self._values.values.CopyFrom(_numbers_of(self._numbers))
            request.values.CopyFrom(self._values)
        if self._distincts.times:
            request.distincts.CopyFrom(self._distincts)
        if self._distributions.times:
            request.distributions.CopyFrom(self._distributions)
        return request

    def _series_of(self, field: str, point: Point) -> int:
        segments = point.segments
        if not isinstance(segments, Mapping):
            kind = type(segments).__name__
            raise InvalidArgument(f"{field}.segments: is of type {kind}; it is {{segment key: value}}")
        try:
            name = (point.metric, *sorted(segments.items()))
            found = self._series.get(name)
        except TypeError:
            # Something in it is no str; the checks say what.
            found = None
        if found is not None:
            return found
        metric = _checks.text(f"{field}.metric", point.metric)
        for key, value in segments.items():
            _checks.text(f"{field}.segments", key)
            _checks.text(f"{field}.segments", value)
        series = len(self._series_metrics)
        self._series[name] = series
        self._series_metrics.append(self._metrics.setdefault(metric, len(self._metrics)))
        for key, value in segments.items():
            if key not in self._keys:
                self._keys[key] = ({}, [0] * series)
                self._bytes += 4 * series
            values = self._keys[key][0]
            if value not in values:
                values[value] = 1 + len(values)
                self._bytes += 4 * len(value) + 4
        for key, (values, of_series) in self._keys.items():
            of_series.append(values[segments[key]] if key in segments else 0)
        self._bytes += 4 * (1 + len(self._keys))
        return series


def _number_of(field: str, value: Any) -> int | float:
    """Returns a number of any type that is one, such as numpy's."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        whole = int(value)
        if not _LEAST_INTEGER <= whole <= _GREATEST_INTEGER:
            raise InvalidArgument(f"{field}: is beyond the integers of 64 bits")
        return whole
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        real = float(value)
        if not math.isfinite(real):
            raise InvalidArgument(f"{field}: is {real}; it is a finite number")
        return real
    kind = "None" if value is None else f"of type {type(value).__name__}"
    raise InvalidArgument(f"{field}: is {kind}; it is a number, or a list of members or of numbers")


def _value_of(field: str, value: Any) -> int | float | _Reals | list[bytes]:
    """Returns the value of a point: a number, the numbers of a distribution, or the members of a set."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        return _number_of(field, value)
    entries = list(value)
    if not entries or isinstance(entries[0], (str, bytes, bytearray, memoryview)):
        return [_checks.octets(field, entry) for entry in entries]
    return _Reals(float(_number_of(field, entry)) for entry in entries)


def _numbers_of(values: list[int | float]) -> messages.Numbers:
    is_real = [isinstance(value, float) for value in values]
    return messages.Numbers(
        integers=[value for value in values if isinstance(value, int)],
        reals=[value for value in values if isinstance(value, float)],
        is_real=is_real if any(is_real) and not all(is_real) else [],
    )


def batches_of(
    dataset: str, report: str, points: Iterable[Point], batch: str, add: bool
) -> Iterator[tuple[messages.WritePointsRequest, int]]:
    """Yields (message, how many points it has). The ID of the first message is `batch`; those of later ones have a
    number after that."""
    if isinstance(points, (str, bytes, Mapping)) or not hasattr(points, "__iter__"):
        raise InvalidArgument(f"points: is of type {type(points).__name__}; it is an iterable of kvstore.Point")
    part = _Batch()
    parts = 0

    def message() -> tuple[messages.WritePointsRequest, int]:
        name = f"{batch}#{parts}" if batch and parts else batch
        return part.message(dataset, report, name, add), part.points

    for at, point in enumerate(points):
        if part.full():
            yield message()
            part = _Batch()
            parts += 1
        if not isinstance(point, tuple) or len(point) != len(Point._fields):
            raise InvalidArgument(f"points[{at}]: is no kvstore.Point(metric, time, segments, value)")
        part.add(f"points[{at}]", point if isinstance(point, Point) else Point(*point))
    if part.points:
        yield message()
