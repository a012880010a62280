"""Answers to queries of reports as DataFrames."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

    from kvstore._report_types import QueryResult


def frame_of(result: "QueryResult", compared: bool) -> "pandas.DataFrame":
    """Returns the points of an answer, or those that they are compared with; ImportError without pandas."""
    try:
        import numpy
        import pandas
    except ImportError:
        raise ImportError(
            "to_pandas() needs pandas, which is not installed: apt install python3-pandas, or pip install pandas"
        ) from None
    found = [dict((one.compared or []) if compared else one.points) for one in result.series]
    times = sorted({time for points in found for time in points})
    index = pandas.DatetimeIndex(numpy.array(times, dtype="datetime64[ms]"), name="time")
    frame = pandas.DataFrame(index=index.tz_localize("UTC").tz_convert(result.timezone))
    for at, points in enumerate(found):
        whole = all(isinstance(value, int) for value in points.values())
        column = [points.get(time) for time in times]
        # Lists become arrays here, because pandas would make floats of integers beside a gap.
        frame[at] = pandas.array(column, dtype="Int64") if whole else numpy.array(column, dtype="float64")
    frame.columns = pandas.MultiIndex.from_tuples(
        [(one.metric, one.filter, *one.segments.values()) for one in result.series],
        names=["metric", "filter", *result.group_by],
    )
    return frame
