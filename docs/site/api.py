"""The reference of the public headers, made from what Doxygen reads in them."""
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET

_SETTINGS = """
FILE_PATTERNS = *.h
GENERATE_XML = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
HIDE_UNDOC_CLASSES = NO
QUIET = YES
WARNINGS = NO
"""


def make(root: pathlib.Path, headers: list[str], work: pathlib.Path, out: pathlib.Path) -> list[tuple[str, str]]:
    """Writes a page for each header, and returns their titles and places, relative to `out`."""
    work.mkdir(parents=True, exist_ok=True)
    inputs = " ".join(str(root / header) for header in headers)
    settings = f"INPUT = {inputs}\nSTRIP_FROM_PATH = {root}\nOUTPUT_DIRECTORY = {work}\n{_SETTINGS}"
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
    files = {path.stem: ET.parse(path).getroot().find("compounddef") for path in (work / "xml").glob("*.xml")
             if path.stem != "index"}
    pages = []
    for header in headers:
        found = [one for one in files.values()
                 if one is not None and one.get("kind") == "file" and one.find("location").get("file") == header]
        name = pathlib.Path(header).name
        path = out / "reference" / "api" / (header.replace("/", "-") + ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_header(header, found[0], files))
        pages.append((name, str(path.relative_to(out))))
    return pages


def _header(header: str, file: ET.Element, files: dict) -> str:
    parts = [f"# {header}", "", f"```c++\n#include \"{header}\"\n```", ""]
    for member in _members(file, header, files):
        parts += _member(member, "##")
    for inner in file.iter("innerclass"):
        compound = files.get(inner.get("refid"))
        if compound is not None:
            parts += _compound(compound, files, "##")
    return "\n".join(parts) + "\n"


def _members(file: ET.Element, header: str, files: dict) -> list[ET.Element]:
    """The functions, constants, enumerations and other names of a header that are in no class."""
    found = {}
    spaces = [files.get(inner.get("refid")) for inner in file.iter("innernamespace")]
    for compound in [file] + [space for space in spaces if space is not None]:
        for member in compound.iter("memberdef"):
            if member.find("location").get("file") == header and member.get("kind") != "define":
                found.setdefault(member.get("id"), member)
    return sorted(found.values(), key=lambda member: int(member.find("location").get("line")))


def _compound(compound: ET.Element, files: dict, heading: str) -> list[str]:
    kind = compound.get("kind")
    name = compound.findtext("compoundname").replace("kvstore::", "")
    parts = [f"{heading} {kind} {name}", ""] + _text(compound)
    members = [member for section in compound.iter("sectiondef") if section.get("kind", "").startswith("public")
               for member in section.iter("memberdef") if not member.findtext("name").startswith("~")]
    members.sort(key=lambda member: int(member.find("location").get("line")))
    fields = [member for member in members if member.get("kind") == "variable"]
    if fields:
        parts += ["| field | type | default | |", "| --- | --- | --- | --- |"]
        for field in fields:
            default = re.sub(r"^=\s*", "", _flat(field.find("initializer")))
            cells = [field.findtext("name"), _flat(field.find("type")), default]
            text = " ".join(_text(field)).replace("|", "\\|").strip()
            parts.append("| " + " | ".join(f"`{cell}`" if cell else "" for cell in cells) + f" | {text} |")
        parts.append("")
    for member in members:
        if member.get("kind") != "variable":
            parts += _member(member, heading + "#")
    return parts


def _member(member: ET.Element, heading: str) -> list[str]:
    kind = member.get("kind")
    name = member.findtext("name")
    parts = [f"{heading} {name or 'enum'}", ""]
    if kind == "enum":
        values = "".join(f"  {value.findtext('name')},\n" for value in member.iter("enumvalue"))
        parts.append(f"```c++\nenum class {name} {{\n{values}}}\n```")
    else:
        declared = re.sub(r"\bkvstore::(?:\w+::)*(?=\w+$)", "", member.findtext("definition") or "")
        arguments = (member.findtext("argsstring") or "") + _flat(member.find("initializer"), " ")
        arguments = re.sub(r"=0$", " = 0", arguments)
        parts.append(f"```c++\n{_tight(declared + arguments)};\n```")
    parts += [""] + _text(member)
    for value in member.iter("enumvalue"):
        parts.append(f"- `{value.findtext('name')}`: " + " ".join(_text(value)).strip())
    return parts + [""]


def _flat(element: ET.Element | None, before: str = "") -> str:
    text = _tight(" ".join("".join(element.itertext()).split())) if element is not None else ""
    return before + text if text else ""


def _tight(code: str) -> str:
    """Types as we write them: std::vector<Cell>&, where Doxygen has std::vector< Cell > &."""
    return re.sub(r" ([&*]+)(?=\w|,|\))", r"\1 ", re.sub(r"< ", "<", re.sub(r" >", ">", code))) if "<<" not in code else code


def _text(element: ET.Element) -> list[str]:
    """The description, a paragraph in each line. What is said of parameters, "name  what it is", becomes a list."""
    names = [name.text for name in element.findall("param/declname")]
    paragraphs = []
    for part in ("briefdescription", "detaileddescription"):
        for para in element.iterfind(f"{part}/para"):
            text = " ".join(_inline(para).split())
            # Doxygen has joined the lines.
            if names and text.split(" ")[0] in names:
                pattern = r"(?:^|(?<=[.;:] ))(" + "|".join(map(re.escape, names)) + r") (?=\S)"
                text = re.sub(pattern, r"\n- **\1**: ", text).strip()
            if text:
                paragraphs += [text, ""]
    return paragraphs


def _inline(element: ET.Element) -> str:
    text = _escaped(element.text or "")
    for child in element:
        inner = _inline(child)
        if child.tag == "computeroutput":
            inner = f"`{''.join(child.itertext())}`"
        elif child.tag == "bold":
            inner = f"**{inner}**"
        elif child.tag == "emphasis":
            inner = f"*{inner}*"
        elif child.tag == "listitem":
            inner = f"\n- {inner}"
        elif child.tag == "ulink":
            inner = f"[{inner}]({child.get('url')})"
        elif child.tag in ("verbatim", "preformatted"):
            inner = f"`{' '.join(''.join(child.itertext()).split())}`"
        text += inner + _escaped(child.tail or "")
    return text


def _escaped(text: str) -> str:
    return re.sub(r"([*_<\[\]])", r"\\\1", text)
