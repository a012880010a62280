"""The reference of the Python client, made from its signatures and docstrings. Run with the client on PYTHONPATH."""
import inspect
import re
import sys


def _shown(text: str | None) -> str:
    """A docstring in Markdown: "name  what it is" of a parameter becomes a list."""
    return re.sub(r"(?m)^(\w+) {2,}(?=\S)", r"\n- **\1**: ", inspect.cleandoc(text or "")) + "\n"


def _signature(of: object) -> str:
    try:
        text = str(inspect.signature(of))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"kvstore\._\w+\.|collections\.abc\.|typing\.", "", text).replace("(self, ", "(").replace("(self)", "()")
    if len(text) < 80:
        return text
    # A line for each parameter; a comma within brackets is part of a type.
    return re.sub(r"(?<=,) (?=\*\*?\w|\*,|/,|\w+:)", "\n    ", text).replace("(", "(\n    ", 1)


def _class(name: str, of: type) -> list[str]:
    lines = [f"## {name}", "", f"```python\nclass {name}{_signature(of) if not issubclass(of, Exception) else ''}\n```", "",
             _shown(of.__doc__)]
    for method, function in inspect.getmembers(of, inspect.isfunction):
        if method.startswith("_"):
            continue
        lines += [f"### {name}.{method}", "", f"```python\n{method}{_signature(function)}\n```", "", _shown(function.__doc__)]
    return lines


def main() -> None:
    import kvstore

    lines = ["# Python API", "", "[The Python client](../python.md) shows how it is used. `kvstore.aio.Client` has the same methods as "
             "coroutines, and iterators for `async for`.", "", _shown(kvstore.__doc__)]
    classes = [(name, getattr(kvstore, name)) for name in kvstore.__all__ if inspect.isclass(getattr(kvstore, name))]
    others = [one for one in classes if one[0] not in ("Client", "Reports")]
    first = [("Client", kvstore.Client), ("Reports", kvstore.Reports)]
    for name, of in first + sorted(others, key=lambda one: (issubclass(one[1], Exception), one[0])):
        lines += _class(name, of)
    sys.stdout.write("\n".join(lines))


main()
