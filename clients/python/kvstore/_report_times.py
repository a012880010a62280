"""Times, steps and stretches of time of reports."""

import datetime
import re
import zoneinfo

from kvstore import _checks
from kvstore._errors import InvalidArgument
from kvstore._report_types import Length, Time
from kvstore.v1 import reports_pb2 as messages

# The last millisecond of the year 9999.
MAX_TIME = 253_402_300_799_999

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MS = datetime.timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_MAX_STEP_MS = 36_525 * _DAY_MS
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_STEP = re.compile(r"(\d{1,19})(ms|s|m|h|d|w|mo|y)", re.ASCII)
# By the name of a unit: the unit of a message, how many of these it has, and about how many ms it is.
_UNITS = {
    "ms": (messages.Step.UNIT_MILLISECONDS, 1, 1),
    "s": (messages.Step.UNIT_MILLISECONDS, 1_000, 1_000),
    "m": (messages.Step.UNIT_MILLISECONDS, 60_000, 60_000),
    "h": (messages.Step.UNIT_MILLISECONDS, 3_600_000, 3_600_000),
    "d": (messages.Step.UNIT_DAYS, 1, _DAY_MS),
    "w": (messages.Step.UNIT_WEEKS, 1, 7 * _DAY_MS),
    "mo": (messages.Step.UNIT_MONTHS, 1, 30 * _DAY_MS),
    "y": (messages.Step.UNIT_MONTHS, 12, 365 * _DAY_MS),
}
_FIXED_MS = {
    messages.Step.UNIT_MILLISECONDS: 1,
    messages.Step.UNIT_DAYS: _DAY_MS,
    messages.Step.UNIT_WEEKS: 7 * _DAY_MS,
}


def _zone(name: str) -> datetime.tzinfo:
    if name == "UTC":
        return datetime.timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise InvalidArgument(
            f"timezone: this machine knows no zone {name[:64]!r}, so dates need one; give an IANA name such as "
            "Europe/Berlin, or times with an offset"
        ) from None


def _no_time(field: str) -> InvalidArgument:
    return InvalidArgument(
        f"{field}: is no time: give RFC 3339 (2013-01-31T05:00:00Z), a date (2013-01-31), a datetime, or milliseconds "
        "since 1970"
    )


def time_ms(field: str, value: Time, timezone: str = "UTC", most: int = MAX_TIME) -> int:
    """Returns a time in ms, from 0 to `most`. Parts of a millisecond are dropped.

    timezone  the zone whose midnight a date is.
    """
    if isinstance(value, str):
        value = _from_text(field, value)
    if isinstance(value, datetime.date):
        ms = _from_date(field, value, timezone)
    elif isinstance(value, int) and not isinstance(value, bool):
        ms = value
    else:
        raise _no_time(field)
    if not 0 <= ms <= most:
        raise InvalidArgument(f"{field}: {ms} ms is not from 1970 to 9999")
    return ms


def _from_text(field: str, text: str) -> datetime.date:
    try:
        if _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
        if _RFC_3339.fullmatch(text):
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    raise _no_time(field)


def _from_date(field: str, value: datetime.date, timezone: str) -> int:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time.min, _zone(timezone))
    if value.utcoffset() is None:
        raise InvalidArgument(
            f"{field}: is a datetime without a time zone: say which one it is in (tzinfo=datetime.timezone.utc)"
        )
    return int((value - _EPOCH) // _MS)


def step_of(field: str, value: Length) -> messages.Step:
    """Returns a stretch of time as a message."""
    if isinstance(value, datetime.timedelta):
        if value % _MS:
            raise InvalidArgument(f"{field}: has parts of a millisecond")
        value = value // _MS
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value}ms"
    parts = _STEP.fullmatch(value) if isinstance(value, str) else None
    if parts:
        unit, factor, about_ms = _UNITS[parts[2]]
        count = int(parts[1])
        if 1 <= count <= _MAX_STEP_MS // about_ms:
            return messages.Step(unit=unit, count=count * factor)
    raise InvalidArgument(
        f"{field}: is no stretch of time: give a whole number from 1 and a unit (ms, s, m, h, d, w, mo, y), a "
        "timedelta, or milliseconds; no more than 100 years"
    )


def length_ms(field: str, value: Length, zero: bool = False) -> int:
    """Returns a stretch of time of a fixed length in ms, a day counted as 24 hours.

    zero  whether 0, "0" and an empty timedelta are allowed.
    """
    if zero and value in (0, "0", datetime.timedelta()) and value is not False:
        return 0
    step = step_of(field, value)
    if step.unit not in _FIXED_MS:
        raise InvalidArgument(f"{field}: must have a fixed length: ms, s, m, h, d or w")
    return step.count * _FIXED_MS[step.unit]


def compare_of(value: str) -> tuple[messages.Step, bool]:
    """Returns what "-7d" says: (the step, whether it is later)."""
    if not isinstance(value, str) or value[:1] not in ("-", "+"):
        raise InvalidArgument('compare_to: must be a sign and a stretch of time: "-7d"')
    return step_of("compare_to", value[1:]), value[0] == "+"
