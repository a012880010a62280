"""The list of all metrics of /metrics, made from the sources."""
import pathlib
import re

# The titles of the folders, in the words of a reader.
_PARTS = {
    "server": "The server: calls, connections, the process",
    "router": "Datasets and those who follow them",
    "catalog": "The shared catalog",
    "backends/rocksdb": "The embedded store",
    "backends/mysql": "MySQL servers and shard maps",
    "backends/cached": "Caches in front of a backend",
    "migration": "Migrations",
    "reports": "Reports",
    "backend_api": "Followers of changes",
    "backup": "Backups of a store",
    "fleet_backup": "Backups of MySQL servers",
    "operate": "kv operate",
}
_LITERALS = r'"((?:[^"\\]|\\.)*)"((?:\s*"(?:[^"\\]|\\.)*")*)'
# A name and, after a comma or in .Help(), what it means.
_NAMED = re.compile(r'"((?:kvstore|process)_[a-z_]+)"\)?\s*(?:,|\.Help\()\s*' + _LITERALS)
_ANY = re.compile(r'"((?:kvstore|process)_[a-z_]+_(?:total|seconds|bytes)|kvstore_rocksdb_[a-z_]+)"')


def find(root: pathlib.Path) -> dict[str, dict[str, str]]:
    """Returns {part: {name: meaning}}. ValueError if a metric has no meaning, or its folder is not known."""
    parts: dict[str, dict[str, str]] = {title: {} for title in _PARTS.values()}
    for folder, title in _PARTS.items():
        for path in sorted((root / folder).rglob("*.cc")):
            for name, first, rest in _NAMED.findall(path.read_text()):
                parts[title][name] = (first + "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', rest))).replace('\\"', '"')
    known = {name for metrics in parts.values() for name in metrics}
    for path in root.glob("*/**/*.cc"):
        if path.relative_to(root).parts[0] in ("tests", "build", "bench"):
            continue
        for name in _ANY.findall(path.read_text()):
            if name not in known:
                raise ValueError(f"{path}: no meaning of {name} is found; see docs/site/metrics.py")
    return parts


def make(root: pathlib.Path, out: pathlib.Path) -> None:
    """Writes the page."""
    lines = ["# Metrics", "", "All that `/metrics` of a server tells ([http in configuration](../configuration.md)), in Prometheus' form. "
             "Names that end in `_total` are counters since the start, `kvstore_call_seconds` is a histogram, all others are gauges. "
             "[A server at 3 a.m.](../operations.md#a-server-at-3-am) says when to act.", ""]
    for title, metrics in find(root).items():
        lines += [f"## {title}", "", "| metric | meaning |", "| --- | --- |"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in sorted(metrics.items())]
        lines.append("")
    path = out / "reference" / "metrics.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
