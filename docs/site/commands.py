"""A page for each command of kv, with its help and that of the commands below it."""
import os
import pathlib
import re
import subprocess


def make(kv: pathlib.Path, out: pathlib.Path) -> list[tuple[str, str]]:
    """Writes the pages, and returns their titles and places, relative to `out`."""
    folder = out / "reference" / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    text = _help(kv, [])
    (folder / "kv.md").write_text(_page(kv, [], below=False))
    pages = [("kv", "reference/commands/kv.md")]
    for name in _below(text):
        (folder / f"{name}.md").write_text(_page(kv, [name]))
        pages.append((f"kv {name}", f"reference/commands/{name}.md"))
    return pages


def _help(kv: pathlib.Path, command: list[str]) -> str:
    # The defaults that it tells must not be those of whoever makes the pages.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KV_")}
    done = subprocess.run([kv, *command, "--help"], capture_output=True, text=True, check=True,
                          env=environment | {"COLUMNS": "100"})
    return done.stdout


def _below(text: str) -> list[str]:
    _, found, rest = text.partition("\nSubcommands:\n")
    if not found:
        return []
    return re.findall(r"^  (\w[\w-]*)", rest.partition("\n\n")[0], re.M)


def _page(kv: pathlib.Path, command: list[str], below: bool = True) -> str:
    text = _help(kv, command)
    page = f"{'#' * max(1, len(command))} {' '.join(['kv', *command])}\n\n````text\n{text.strip()}\n````\n\n"
    if below:
        page += "".join(_page(kv, [*command, name]) for name in _below(text))
    return page
