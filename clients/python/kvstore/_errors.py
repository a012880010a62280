"""What can go wrong: one class of exceptions, with a subclass for each code that a caller may want to tell apart."""


class Error(Exception):
    """A call that failed. All exceptions of this client are of this class.

    code      the name of its code, as docs/data-model.md lists them: "NOT_FOUND", "UNAVAILABLE", ...
    message   what is wrong: the field and the limit, or where it failed.
    in_doubt  True: a write that may or may not have happened, or happens later. False: it changed nothing.

    Where gRPC said so, its own exception is the `__cause__`.
    """

    code = "UNKNOWN"

    def __init__(self, message, *, code=None, in_doubt=False):
        super().__init__(message)
        self.message = message
        self.in_doubt = in_doubt
        if code is not None:
            self.code = code

    def __str__(self):
        doubt = " (the write may or may not have happened)"
        said = not self.in_doubt or "may or may not have happened" in self.message
        return f"{self.code}: {self.message}{'' if said else doubt}"


class InvalidArgument(Error, ValueError):
    """It can never succeed as it was asked; nothing changed. Most of these are found before anything is sent."""

    code = "INVALID_ARGUMENT"


class NotFound(Error):
    """There is no such dataset or object. A row that does not exist is an empty row and no error."""

    code = "NOT_FOUND"


class AlreadyExists(Error):
    """What was to be created exists, or the column that a put wanted absent is there."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(Error):
    """A condition that did not match, an object of another timestamp, or what the dataset's shape or settings
    forbid."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(Error):
    """A disk, a pool, a share or a range of IDs is full, or a batch of reads has more than fits into its answers."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(Error):
    """The server, or what it needs, could not be reached; later it may work."""

    code = "UNAVAILABLE"


class DeadlineExceeded(Error):
    """It took longer than timeout_s."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(Error):
    """It was stopped by its caller."""

    code = "CANCELLED"


class Unauthenticated(Error):
    """The server wants a token and got none that it knows."""

    code = "UNAUTHENTICATED"


class PermissionDenied(Error):
    """The caller is known and may not do this."""

    code = "PERMISSION_DENIED"


class DataLoss(Error):
    """Stored bytes that do not decode."""

    code = "DATA_LOSS"


class Unimplemented(Error):
    """The server does not know this call, or does not take the request in this form."""

    code = "UNIMPLEMENTED"


class Internal(Error):
    """What should not happen."""

    code = "INTERNAL"


class BadAnswer(Internal):
    """The server answered something else than what it was asked: another object, a page that does not go on."""


class BatchError(Error):
    """Entries of a batch failed; the others were done, and stay so. `code` is that of the first that failed.

    results   one for each entry, in order: what the call gives for an entry that went well, or an Error.
    in_doubt  whether one of them is.
    """

    def __init__(self, results):
        failed = [(at, result) for at, result in enumerate(results) if isinstance(result, Error)]
        at, first = failed[0]
        super().__init__(
            f"{len(failed)} of {len(results)} entries failed; the first of them, entry {at}: {first}",
            code=first.code,
            in_doubt=any(error.in_doubt for _, error in failed),
        )
        self.results = results

    def __reduce__(self):
        return BatchError, (self.results,)


# As gRPC numbers them.
_NAMES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
_CLASSES = {
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
        Unimplemented,
        Internal,
    )
}


def error_of(code, message, in_doubt=False):
    """The exception for the name of a code."""
    return _CLASSES.get(code, Error)(message, code=code, in_doubt=in_doubt)


def entry_error(error):
    """The exception for the message Error of one entry of a batch."""
    code = _NAMES[error.code] if 0 < error.code < len(_NAMES) else "UNKNOWN"
    return error_of(code, error.message, in_doubt=error.outcome == "in-doubt")
