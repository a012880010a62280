"""The exceptions: one class, with a subclass for each code that a caller may want to distinguish."""

from typing import Any


class Error(Exception):
    """A call that failed. All exceptions of this client are of this class.

    code      the name of its code, as docs/data-model.md lists them: "NOT_FOUND", "UNAVAILABLE", ...
    message   what is wrong: the field and the limit, or where it failed.
    in_doubt  True: the write may have happened or not, or may still happen. False: it changed nothing.

    If gRPC raised an exception, that is the `__cause__`.
    """

    code: str = "UNKNOWN"
    message: str
    in_doubt: bool

    def __init__(self, message: str, *, code: str | None = None, in_doubt: bool = False):
        super().__init__(message)
        self.message = message
        self.in_doubt = in_doubt
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        doubt = " (the write may or may not have happened)"
        said = not self.in_doubt or "may or may not have happened" in self.message
        return f"{self.code}: {self.message}{'' if said else doubt}"


class InvalidArgument(Error, ValueError):
    """The call can never succeed as it was made; nothing changed. Most of these are raised before anything is sent."""

    code = "INVALID_ARGUMENT"


class NotFound(Error):
    """There is no such dataset or object. A row that does not exist is an empty row, not an error."""

    code = "NOT_FOUND"


class AlreadyExists(Error):
    """What the call should create exists already, or a column that a put's condition wanted absent exists."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(Error):
    """A condition did not match, an object has another timestamp than expected, or the dataset's shape or settings
    forbid the call."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(Error):
    """A disk, a pool, a caller's share or a range of IDs is full, or the answers of a batch of reads are too large."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(Error):
    """The server, or something that it needs, could not be reached; a later call may succeed."""

    code = "UNAVAILABLE"


class DeadlineExceeded(Error):
    """The call took longer than timeout_s."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(Error):
    """The call was stopped by its caller."""

    code = "CANCELLED"


class Unauthenticated(Error):
    """The server requires a token, and received none that it knows."""

    code = "UNAUTHENTICATED"


class PermissionDenied(Error):
    """The caller is known, but not allowed to do this."""

    code = "PERMISSION_DENIED"


class DataLoss(Error):
    """Stored bytes that do not decode."""

    code = "DATA_LOSS"


class OutOfRange(Error):
    """What was asked for is not there any more: changes that are no longer kept."""

    code = "OUT_OF_RANGE"


class Unimplemented(Error):
    """The server does not know this call, or does not accept the request in this form."""

    code = "UNIMPLEMENTED"


class Internal(Error):
    """An error that should not occur."""

    code = "INTERNAL"


class BadAnswer(Internal):
    """The server's answer does not fit the request: another object, a page that does not advance."""


class BatchError(Error):
    """Some entries of a batch failed; the others were done. `code` is that of the first entry that failed.

    results   one for each entry, in order: the call's result for an entry that succeeded, or an Error.
    in_doubt  whether one of the errors is in doubt.
    """

    results: list[Any]

    def __init__(self, results: list[Any]):
        failed = [(at, result) for at, result in enumerate(results) if isinstance(result, Error)]
        at, first = failed[0]
        super().__init__(
            f"{len(failed)} of {len(results)} entries failed; the first of them, entry {at}: {first}",
            code=first.code,
            in_doubt=any(error.in_doubt for _, error in failed),
        )
        self.results = results

    def __reduce__(self) -> tuple[type["BatchError"], tuple[list[Any]]]:
        return BatchError, (self.results,)


# The codes in the order of their numbers in gRPC.
_NAMES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
_CLASSES: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        NotFound,
        AlreadyExists,
        FailedPrecondition,
        ResourceExhausted,
        Unavailable,
        DeadlineExceeded,
        Cancelled,
        Unauthenticated,
        PermissionDenied,
        DataLoss,
        OutOfRange,
        Unimplemented,
        Internal,
    )
}


def error_of(code: str, message: str, in_doubt: bool = False) -> Error:
    """Returns the exception for the name of a code."""
    return _CLASSES.get(code, Error)(message, code=code, in_doubt=in_doubt)


def closed() -> InvalidArgument:
    return InvalidArgument("the client is closed")


def entry_error(error: Any) -> Error:
    """Returns the exception for the message Error of one entry of a batch."""
    code = _NAMES[error.code] if 0 < error.code < len(_NAMES) else "UNKNOWN"
    return error_of(code, error.message, in_doubt=error.outcome == "in-doubt")
