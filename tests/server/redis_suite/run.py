"""Runs tests of Redis itself against the Redis port of a server: run.py KV SUITE [--all] [UNIT...]

KV is the program, SUITE a folder with the sources of Redis. What the tests expect and the port does not do is in the list
"differences" beside this program. Fails if a test fails that is not in the list, if one passes that is, or if a line of the list
fits no test. --all runs the tests that are to be skipped, too, and only tells the outcome of each."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import proxy

HERE = pathlib.Path(__file__).resolve().parent
# protocol and quit are about connections, scan and keyspace about keys of any type.
UNITS = ["type/hash", "type/string", "type/incr", "type/stream", "type/zset", "scan", "keyspace", "protocol", "quit"]
DATASETS = [["rows"], ["streams", "--max-versions", "0"], ["sets", "--shape", "mappings"]]
# Tests that look into a server of Redis, or start one; and those that want to know how a value is encoded in memory.
OPTIONS = ["--singledb", "--durable", "--clients", "1", "--timeout", "300", "--ignore-encoding", "--ignore-digest",
           "--tags", "-needs:debug -needs:repl -external:skip"]


class Differences:
    """The list: patterns of names of tests that are not run, and of those that fail."""

    def __init__(self, path):
        self.skipped, self.failing = [], []
        reason = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            kind, _, rest = line.strip().partition(" ")
            if kind == "-":
                reason = rest
            elif reason is None or kind not in ("skip", "fails"):
                sys.exit(f"{path}:{number}: a line is '- REASON', 'skip PATTERN' or 'fails PATTERN', in this order")
            else:
                (self.skipped if kind == "skip" else self.failing).append(rest)


def regex_of(pattern):
    """A pattern is a name, in which * is any text, and \\* a star."""
    return "^" + ".*".join(re.escape(part).replace(r"\\\*", r"\*") for part in re.split(r"(?<!\\)\*", pattern)) + "$"


def run_suite(suite, port, units, skipped):
    """Returns the outcomes of each test, by its name, and what the suite printed."""
    with tempfile.NamedTemporaryFile("w", suffix=".skip") as skip_file:
        skip_file.write("\n".join("/" + regex_of(pattern) for pattern in skipped))
        skip_file.flush()
        command = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), *OPTIONS,
                   "--skipfile", skip_file.name]
        for unit in units:
            command += ["--single", f"unit/{unit}"]
        ran = subprocess.run(command, cwd=suite, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             check=False, text=True, errors="replace")
    printed = re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout)
    outcomes = collections.defaultdict(set)
    for kind, name in re.findall(r"^\[(ok|err|skip)\]: (.*)$", printed.partition("The End")[0], re.MULTILINE):
        name = re.sub(r" \(\d+ ms\)$", "", name) if kind == "ok" else re.sub(r" in tests/unit/\S+$", "", name)
        outcomes[name].add(kind)
    return outcomes, printed


def judge(outcomes, printed, units, differences):
    """Returns what is wrong."""
    wrong = []
    for unit in units:
        if f"done]: unit/{unit} " not in printed:
            wrong.append(f"unit {unit} was not run to its end")
    for name, kinds in outcomes.items():
        if "err" in kinds and not any(re.match(regex_of(pattern), name) for pattern in differences.failing):
            wrong.append(f"fails, and is not in the list: {name}")
    for pattern in differences.skipped:
        if not any("skip" in kinds and re.match(regex_of(pattern), name) for name, kinds in outcomes.items()):
            wrong.append(f"skip {pattern}: there is no such test")
    for pattern in differences.failing:
        fitting = [(name, kinds) for name, kinds in outcomes.items() if "skip" not in kinds and re.match(regex_of(pattern), name)]
        wrong += [f"fails {pattern}: {name} passes" for name, kinds in fitting if "err" not in kinds]
        if not fitting:
            wrong.append(f"fails {pattern}: there is no such test")
    return wrong


def main():
    kv, suite = sys.argv[1:3]
    run_all = "--all" in sys.argv[3:]
    units = [word for word in sys.argv[3:] if word != "--all"] or UNITS
    differences = Differences(HERE / "differences")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            server = subprocess.Popen([kv, "--data", f"{folder}/store", "serve", "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0"],
                                      stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            # serving on 127.0.0.1:1234; redis on 127.0.0.1:1235
            served = re.fullmatch(r"serving on (\S+); redis on \S+:(\d+)\n", server.stdout.readline())
            if not served:
                sys.exit(pathlib.Path(f"{folder}/log").read_text(encoding="utf-8"))
            for dataset in DATASETS:
                subprocess.run([kv, "--server", served[1], "dataset", "create", *dataset], check=True, stdout=subprocess.DEVNULL)
            port = proxy.start(int(served[2]))
            outcomes, printed = run_suite(suite, port, units, [] if run_all else differences.skipped)
            gone = server.poll() is not None
        finally:
            server.terminate()
            server.wait()
    if run_all:
        print(printed)
        print(json.dumps({name: sorted(kinds) for name, kinds in outcomes.items()}, indent=1))
        return
    wrong = judge(outcomes, printed, units, differences) if len(units) == len(UNITS) else []
    if gone:
        wrong.append("the server has ended")
    if wrong:
        print(printed.partition("The End")[2])
    counts = collections.Counter("failed" if "err" in kinds else "passed" if "ok" in kinds else "skipped" for kinds in outcomes.values())
    print(f"{counts['passed']} tests passed, {counts['failed']} failed, {counts['skipped']} were skipped; of the last two, "
          f"{'some are not' if wrong else 'all are'} as the list says")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
