"""Arguments, checked and turned into what messages take. Each mistake is an InvalidArgument that names the field, what
is wrong and what is allowed. Keys and values of users are not quoted: messages end up in logs."""

from kvstore._errors import InvalidArgument
from kvstore.v1 import kvstore_pb2 as messages

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


def _quoted(value):
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _kind(value):
    return "None" if value is None else f"of type {type(value).__name__}"


def number(field, value, least, most, default=None):
    """A whole number of least..most; `default` for None, where there is one."""
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        # A text may be somebody's key.
        shown = "" if isinstance(value, (str, bytes)) else f"{_quoted(value)} "
        raise InvalidArgument(f"{field}: {shown}is {_kind(value)}; it is a whole number, {least} to {most}")
    if not least <= value <= most:
        raise InvalidArgument(f"{field}: {value} is out of range {least}..{most}")
    return value


def flag(field, value):
    if not isinstance(value, bool):
        raise InvalidArgument(f"{field}: {_quoted(value)} is {_kind(value)}; it is True or False")
    return value


def seconds(field, value):
    """More than 0, at most 1,000,000,000 seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(f"{field}: {_quoted(value)} is {_kind(value)}; it is a number of seconds")
    if not 0 < value <= 1_000_000_000:
        raise InvalidArgument(f"{field}: {value} is no time to wait; it is above 0, at most 1000000000 (seconds)")
    return value


def choice(field, value, names):
    """The number of a name."""
    if not isinstance(value, str) or value not in names:
        raise InvalidArgument(f"{field}: {_quoted(value)} is none of {', '.join(names)}")
    return names[value]


def text(field, value):
    if not isinstance(value, str):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field}: is a str that has no UTF-8 form") from None
    return value


def octets(field, value, most=None, least=0):
    """Bytes; a str is taken as its UTF-8 form."""
    if isinstance(value, str):
        value = text(field, value).encode()
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    elif not isinstance(value, bytes):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is bytes or a str")
    if most is not None and not least <= len(value) <= most:
        raise InvalidArgument(f"{field}: has {len(value)} bytes; it has {least} to {most}")
    return value


def document(field, value):
    if isinstance(value, (dict, list)):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is JSON text: json.dumps makes it")
    return octets(field, value, MAX_VALUE_BYTES)


def row_key(value):
    return octets("row", value, MAX_KEY_BYTES, least=1)


def timestamp(field, value):
    return number(field, value, 0, MAX_TIMESTAMP)


def object_id(field, value):
    return number(field, value, 0, MAX_ID)


def listed(field, value, most=MAX_CELLS):
    """The entries of something that has several, as a list of 1 to `most`."""
    if isinstance(value, (str, bytes, bytearray)):
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a list")
    try:
        entries = list(value)
    except TypeError:
        raise InvalidArgument(f"{field}: is {_kind(value)}; it is a list") from None
    if not 1 <= len(entries) <= most:
        raise InvalidArgument(f"{field}: has {len(entries)} entries; it has 1 to {most}")
    return entries


def columns(value):
    """The message Names of a list of columns; None for None, which is all."""
    if value is None:
        return None
    return messages.Names(names=[octets("columns", one, MAX_KEY_BYTES) for one in listed("columns", value)])


def time_range(start, end):
    """Of [start, end) in ms: the fields of a message. None as an end: there is none."""
    start = timestamp("start_timestamp", start)
    if end is None:
        return {"start_timestamp": start}
    end = number("end_timestamp", end, 0, MAX_TIMESTAMP + 1)
    if start >= end:
        raise InvalidArgument(f"start_timestamp: {start} is not before end_timestamp {end}")
    return {"start_timestamp": start, "end_timestamp": end}


def versions(value):
    return number("versions", value, 1, MAX_UINT32)


def page_bytes(value):
    return None if value is None else number("max_bytes", value, 1, MAX_PAGE_BYTES)
