"""Pages of the repository as pages of the site: where each one lies, with links that lead there.

Pages are written for GitHub. What MkDocs reads in another way is changed here."""
import os
import pathlib
import re

_LANGUAGES = {".proto": "protobuf", ".sql": "sql", ".py": "python", ".cc": "cpp", ".h": "cpp", ".json": "json"}
_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Repository:
    """Copies pages into a folder, and with them all pages and files of the repository that they lead to."""

    def __init__(self, root: pathlib.Path, out: pathlib.Path):
        self._root = root
        self._out = out
        self._copied: set[pathlib.Path] = set()

    def add(self, path: pathlib.Path) -> str:
        """Copies a page, file or folder, and returns where it lies in the site."""
        place = self._place(path)
        if path in self._copied:
            return place
        self._copied.add(path)
        target = self._out / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(self._page(path, place))
        elif path.suffix in (".svg", ".png"):
            target.write_bytes(path.read_bytes())
        elif path.is_dir():
            files = sorted(file for file in path.iterdir() if file.is_file())
            target.write_text("\n".join([f"# {self._name(path)}", ""] + [_source(file.name, file) for file in files]))
        else:
            target.write_text(_source(self._name(path), path, heading="#"))
        return place

    def _name(self, path: pathlib.Path) -> str:
        return str(path.relative_to(self._root))

    def _place(self, path: pathlib.Path) -> str:
        name = path.relative_to(self._root)
        if str(name) == "README.md":
            return "index.md"
        if path.suffix in (".md", ".svg", ".png"):
            return str(name.relative_to("docs")) if name.parts[0] == "docs" else f"repository/{name}"
        return f"repository/{name}.md"

    def _page(self, path: pathlib.Path, place: str) -> str:
        def moved(link: re.Match[str]) -> str:
            to, sharp, heading = link[1].partition("#")
            if not to or "://" in link[1]:
                return link[0]
            target = (path.parent / to).resolve()
            if target.is_dir() and (target / "README.md").exists():
                target /= "README.md"
            return f"]({os.path.relpath(self.add(target), os.path.dirname(place) or '.')}{sharp}{heading})"

        lines: list[str] = []
        fenced = False
        for line in path.read_text().splitlines():
            if line.lstrip().startswith("```"):
                fenced = not fenced
                # Pygments knows these two words by others.
                line = line.replace("```console", "```shell-session").replace("```cpp", "```c++")
            elif not fenced:
                line = _LINK.sub(moved, line)
                if line.startswith("|"):
                    # Within backquotes a | of a table needs no backslash here.
                    line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
                # A list within a list has to be further in.
                line = re.sub(r"^ {2,3}- ", "    - ", line)
            lines.append(line)
        return "\n".join(lines) + "\n"


def _source(title: str, path: pathlib.Path, heading: str = "##") -> str:
    return f"{heading} {title}\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}````\n"
