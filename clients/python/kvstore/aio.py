"""The client for asyncio: `kvstore.Client` with its calls as coroutines.

    import asyncio
    import kvstore.aio

    async def main():
        async with kvstore.aio.Client("127.0.0.1:7400") as store:
            await store.put_row("events", "user:7", {"click": "pin:3"})
            async for key, row in store.scan_rows("events"):
                print(key, row)

    asyncio.run(main())
"""

from types import TracebackType
from typing import Self

from kvstore import _checks
from kvstore._asyncio import AsyncioWire
from kvstore._calls import Calls
from kvstore._connection import Connection
from kvstore._reports import Reports

__all__ = ["Client", "Reports"]


class Client(Connection, Calls):
    """A connection to a server, for all tasks of the event loop that runs where it is made; what it yields belongs to
    one task at a time.

    Arguments, answers, errors, repetitions and deadlines are those of kvstore.Client. A task that is cancelled ends its
    call on the server, too; a write that it made is in doubt then, as after a lost answer. What is yielded ends where
    it is closed (`await rows.aclose()`, contextlib.aclosing), or some time after it was let go of.
    """

    _wire = AsyncioWire

    def reports(self, dataset: str = "reports") -> Reports:
        """Returns the calls on the reports (time series) of a dataset, which need not exist. Nothing is sent."""
        return Reports(self._caller, _checks.text("dataset", dataset))

    async def close(self) -> None:
        """Ends the connection and the calls in flight over it, which fail with Unavailable."""
        await self._caller.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()
