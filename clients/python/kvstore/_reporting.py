"""Calls on the reports of one dataset."""

from kvstore._caller import Caller, Calling


class Reporting(Calling):
    def __init__(self, caller: Caller, dataset: str):
        super().__init__(caller)
        self._dataset = dataset
