"""The columns of an answer, which arrive as messages or, if there are many small cells, packed."""

from kvstore._checks import MAX_CELLS
from kvstore._errors import BadAnswer
from kvstore._types import Cell
from kvstore.v1 import kvstore_pb2 as messages

# Messages that have `items` or `packed`, and a marker.
PageOfColumns = messages.GetRowResponse | messages.GetRowsResponse.Result


def columns_of(answer: PageOfColumns | messages.ScanRowsResponse.Row) -> dict[bytes, list[Cell]]:
    """Returns {column: [Cell]} of a message that has `items` or `packed`."""
    if answer.HasField("packed"):
        return _unpack(answer.packed)
    return {item.column: [Cell(cell.timestamp, cell.value) for cell in item.cells] for item in answer.items}


def count_of(answer: PageOfColumns) -> int:
    """Returns how many columns a message has."""
    return len(answer.packed.cells) if answer.HasField("packed") else len(answer.items)


def _unpack(packed: messages.PackedItems) -> dict[bytes, list[Cell]]:
    total = len(packed.timestamps)
    sizes = packed.value_bytes
    if total > MAX_CELLS:
        raise BadAnswer("the server's answer: more cells than an answer may have")
    if len(packed.cells) != len(packed.name_bytes) or len(sizes) != total or sum(packed.cells) != total:
        raise BadAnswer("the server's answer: packed items that do not fit together")
    if sum(packed.name_bytes) + sum(sizes) != len(packed.bytes) or 0 in packed.cells:
        raise BadAnswer("the server's answer: packed items that do not fit together")
    # Copied once, because each access to a field of a message makes a copy.
    data, timestamps, sizes = packed.bytes, list(packed.timestamps), list(sizes)
    found: dict[bytes, list[Cell]] = {}
    at = first = 0
    for name_bytes, count in zip(packed.name_bytes, packed.cells):
        column = data[at : at + name_bytes]
        at += name_bytes
        cells = []
        for cell in range(first, first + count):
            cells.append(Cell(timestamps[cell], data[at : at + sizes[cell]]))
            at += sizes[cell]
        first += count
        found[column] = cells
    return found
