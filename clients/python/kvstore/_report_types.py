"""The arguments and results of calls on reports. Plain values, immutable."""

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kvstore._report_frames import frame_of
from kvstore._types import Several, Text

if TYPE_CHECKING:
    import pandas

# A time: ms since 1970; a datetime with a time zone; or a str as RFC 3339 has it ("2013-01-31T05:00:00Z"). A date, or a
# str "2013-01-31", is midnight: in the query's time zone, elsewhere in UTC.
Time = int | str | datetime.date
# A stretch of time: "500ms", "30s", "15m", "6h", "1d", "2w", and for steps also "3mo", "1y"; a timedelta; or ms.
Length = int | str | datetime.timedelta


class SegmentKey(NamedTuple):
    """A dimension of a report: "country".

    default  the value of points that do not name this key, and of all points older than the key; None: each point
             names it.
    """

    name: str
    default: str | None = None


class Metric(NamedTuple):
    """A metric of a report. Its kind says what its points are:

    "value"         a number: an integer, which stays exact, or a real number
    "distinct"      the members of a set, which are counted once each, within some percent
    "distribution"  many numbers, for percentiles within 1 %
    """

    name: str
    kind: str = "value"


class Rollup(NamedTuple):
    """Points that are kept summed over the segment keys that are left out, and over steps of time.

    keys  some of the report's segment keys, or none.
    step  a multiple of the report's resolution that divides its period; in answers in ms.
    """

    keys: Several[str]
    step: Length


class Report(NamedTuple):
    """A report, as far as it was asked for."""

    name: str
    id: int  # Distinguishes it from an earlier report of the same name.
    segment_keys: list[SegmentKey]
    metrics: list[Metric]
    resolution_ms: int  # Times of points are multiples of this.
    period_s: int  # The stretch of time that one row holds.
    salts: int
    retention_ms: int  # Points older than this are gone; 0: they stay.
    rollups: list[Rollup]
    # For each segment key the values that it has had, in the order in which they were first written, the default first;
    # empty if they were not asked for.
    segment_values: dict[str, list[str]]


class MetricPage(NamedTuple):
    """Some metrics of a report, in the order of their names."""

    metrics: list[Metric]
    more: bool  # Others follow the last of these.


class Point(NamedTuple):
    """One point to write.

    segments  {segment key: value}; a key that is not named has its default.
    value     of a metric of kind "value" a number; of kind "distinct" a list or set of members (bytes or str), which
              may be empty; of kind "distribution" a list of numbers.
    """

    metric: str
    time: Time
    segments: Mapping[str, str]
    value: float | Several[Text] | Several[float]


class Expression(NamedTuple):
    """Arithmetic on metrics, under a name: Expression("rate", "late / departures")."""

    name: str
    expression: str


class Filter(NamedTuple):
    """Which series take part in a query.

    where  {segment key: list of values, or "*" for any}; a key that is not named is not looked at.
    name   the name of the filter's series in the answer.
    """

    where: Mapping[str, Several[str] | str]
    name: str = ""


class Top(NamedTuple):
    """Only the n greatest series of each metric and filter.

    by  the function of the whole range by which they are ranked; None: that of the query.
    """

    n: int
    by: str | None = None


class Series(NamedTuple):
    """One series of an answer.

    segments  {key of group_by: value}
    points    [(start of the step in ms, value)], ascending
    compared  the same at the time of compare_to, by the starts of their own steps; None without compare_to
    """

    metric: str
    filter: str
    segments: dict[str, str]
    points: list[tuple[int, float]]
    compared: list[tuple[int, float]] | None


class QueryCost(NamedTuple):
    """What a query has cost the server."""

    rows: int
    chunks: int  # Whose points were read.
    chunks_skipped: int  # Whose directory was enough.
    bytes: int  # Of all chunks of the rows.
    from_rollups: int  # Parts that were answered from roll-ups.
    ms: float


class PartCost(NamedTuple):
    """What reading one salt of one metric has cost."""

    metric: str
    salt: int
    cost: QueryCost


class QueryResult(NamedTuple):
    """The answer to a query."""

    series: list[Series]
    cost: QueryCost
    partial: bool  # Whether something is missing.
    missing: list[str]  # What could not be read, each with the host.
    parts: list[PartCost]  # With explain.
    group_by: list[str]
    timezone: str

    def to_pandas(self, *, compared: bool = False) -> "pandas.DataFrame":
        """Returns the points as a DataFrame; needs pandas, else ImportError.

        The index has the starts of the steps, in the time zone of the query. The columns have the levels "metric",
        "filter" and the keys of group_by. A column of integers is of dtype Int64, which is exact and has NA in a gap;
        any other is of float64.

        compared  True: the points of compare_to, at their own times.
        """
        return frame_of(self, compared)


class ReportCompaction(NamedTuple):
    """The result of Reports.compact."""

    rows: int  # Looked at.
    chunks_merged: int  # Chunks that became one with others.
    chunks_written: int  # Chunks that they became.
    rows_expired: int  # Removed because of the report's retention.
    bytes_before: int  # Of all chunks of the rows that were looked at.
    bytes_after: int


class RollupsMade(NamedTuple):
    """The result of Reports.make_rollups."""

    rows: int  # Rows of points looked at.
    rows_current: int  # Of these, rows whose roll-ups were up to date.
    rows_written: int  # Of these, rows whose roll-ups were made.
    bytes_written: int
