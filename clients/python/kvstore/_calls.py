"""All calls, as coroutines and asynchronous generators."""

from kvstore._batches import Batches
from kvstore._changes import Changes
from kvstore._datasets import Datasets
from kvstore._id_scans import IdScans
from kvstore._mappings import Mappings
from kvstore._objects import Objects
from kvstore._rows import Rows
from kvstore._scans import Scans


class Calls(Datasets, Changes, Rows, Batches, Scans, Objects, Mappings, IdScans):
    pass
