"""Checks arguments and converts them for messages. A mistake raises InvalidArgument, which names the field, what is
wrong and what is allowed. It quotes no keys or values of users, because error messages end up in logs."""

from collections.abc import Iterable
from typing import Any, TypeVar

from kvstore._errors import InvalidArgument
from kvstore._types import Several, Text
from kvstore.v1 import kvstore_pb2 as messages

T = TypeVar("T")

MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 4 << 20
MAX_PUT_BYTES = 8 << 20
MAX_CELLS = 100_000
MAX_PAGE_BYTES = 64 << 20
MAX_BATCH = 10_000
MAX_ENTRIES = 10_000
MAX_TIMESTAMP = (1 << 63) - 1
MAX_ID = (1 << 62) - 1
MAX_UINT32 = (1 << 32) - 1
MAX_UINT64 = (1 << 64) - 1


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def number(field: str, value: int | None, least: int, most: int, default: int | None = None) -> int:
    """A whole number of least..most; `default` for None, where there is one."""
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        # A text may be a user's key.
        shown = "" if isinstance(value, (str, bytes)) else f"{_quoted(value)} "
        raise InvalidArgument(f"{field}: {shown}is {_kind(value)}; it is a whole number, {least} to {most}")
    if not least <= value <= most:
        raise InvalidArgument(f"{field}: {value} is out of range {least}..{most}")
    return value


def flag(field: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{field}: {_quoted(value)} is {_kind(value)}; it is True or False")
    return value


def seconds(field: str, value: float) -> float:
    """Checks a number of seconds: more than 0, at most 1,000,000,000."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(f"{field}: {_quoted(value)} is {_kind(value)}; it is a number of seconds")
    if not 0 < value <= 1_000_000_000:
        raise InvalidArgument(f"{field}: {value} is no time to wait; it is above 0, at most 1000000000 (seconds)")
    return value


def choice(field: str, value: str, names: dict[str, T]) -> T:
    """Returns the number of a name."""
    if not isinstance(value, str) or value not in names:
        raise InvalidArgument(f"{field}: {_quoted(value)} is none of {', '.join(names)}")
    return names[value]


def text(field: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field}: is a str that has no UTF-8 form") from None
    return value


def octets(field: str, value: Text, most: int | None = None, least: int = 0) -> bytes:
    """Returns bytes; a str is converted to UTF-8."""
    if isinstance(value, str):
        value = text(field, value).encode()
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    elif not isinstance(value, bytes):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is bytes or a str")
    if most is not None and not least <= len(value) <= most:
        raise InvalidArgument(f"{field}: has {len(value)} bytes; it has {least} to {most}")
    return value


def document(field: str, value: Text) -> bytes:
    if isinstance(value, (dict, list)):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is JSON text: json.dumps makes it")
    return octets(field, value, MAX_VALUE_BYTES)


def row_key(value: Text) -> bytes:
    return octets("row", value, MAX_KEY_BYTES, least=1)


def timestamp(field: str, value: int) -> int:
    return number(field, value, 0, MAX_TIMESTAMP)


def object_id(field: str, value: int) -> int:
    return number(field, value, 0, MAX_ID)


def listed(field: str, value: Iterable[T], most: int = MAX_CELLS) -> list[T]:
    """Returns the entries of an iterable as a list of 1 to `most`."""
    if isinstance(value, (str, bytes, bytearray)):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a list")
    try:
        entries = list(value)
    except TypeError:
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a list") from None
    if not 1 <= len(entries) <= most:
        raise InvalidArgument(f"{field}: has {len(entries)} entries; it has 1 to {most}")
    return entries


def columns(value: Several[Text] | None) -> messages.Names | None:
    """Returns a list of columns as a message Names; None, which means all columns, for None."""
    if value is None:
        return None
    return messages.Names(names=[octets("columns", one, MAX_KEY_BYTES) for one in listed("columns", value)])


def after_column(value: Text | None) -> bytes | None:
    return None if value is None else octets("after_column", value, MAX_KEY_BYTES)


def time_range(start: int, end: int | None) -> tuple[int, int | None]:
    """Returns the range [start, end) in ms as a message has it; without an end if `end` is None."""
    start = timestamp("start_timestamp", start)
    if end is None:
        return start, None
    end = number("end_timestamp", end, 0, MAX_TIMESTAMP + 1)
    if start >= end:
        raise InvalidArgument(
            f"start_timestamp: {start} is not before end_timestamp {end}; the range [start, end) is empty"
        )
    return start, end


def versions(value: int) -> int:
    return number("versions", value, 1, MAX_UINT32)


def page_bytes(value: int | None) -> int | None:
    return None if value is None else number("max_bytes", value, 1, MAX_PAGE_BYTES)
