"""A Python client (KV_TEST_CLIENT) while its server is killed and started again; and over TLS with certificates on both sides.

python_lost.py KV FOLDER
"""

import json
import re
import signal
import subprocess
import sys
import threading

import kvstore
from kvstore import Point, RowWrite
from python_clients import connect


class Server:
    """`kv serve` as a process. Started again it has the same address."""

    def __init__(self, kv, config):
        self._kv = kv
        self._config = config
        self.address = "127.0.0.1:0"
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [self._kv, "--config", self._config, "serve", "--listen", self.address],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said = self._process.stdout.readline()
        self.address = re.match(r"serving on ([^;\s]*)", said)[1]

    def end(self, how=signal.SIGKILL):
        self._process.send_signal(how)
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def write_config(folder, name, **server):
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump({"data": f"{folder}/{name}", "server": server}, file)
    return f"{folder}/{name}.json"


def test_scan(server, store):
    """A scan whose server is killed and restarted continues: no row twice, none missing."""
    store.create_dataset("long")
    keys = [b"r%04d" % n for n in range(3000)]
    store.put_rows("long", [RowWrite(key, {"c": key + bytes(10_000)}) for key in keys])
    for how in (signal.SIGKILL, signal.SIGTERM):
        found = []
        for key, row in store.scan_rows("long", timeout_s=60):
            assert row[b"c"][0].value.startswith(key)
            found.append(key)
            if len(found) in (1, 1500):
                # The scan is cut off here: the client has not asked for more than the next messages.
                server.end(how)
                threading.Thread(target=server.start).start()
        assert found == keys, (len(found), len(set(found)))
    # If the server does not come back, the scan gives up within its timeout.
    scan = store.scan_rows("long", timeout_s=0.5)
    next(scan)
    server.end()
    try:
        raise AssertionError(f"{len(list(scan))} rows of no server")
    except kvstore.Error as error:
        assert error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"), error
    # The client notices quickly that a server is back; gRPC alone would try once in five seconds.
    server.start()
    assert next(store.scan_rows("long", timeout_s=3))[0] == keys[0]


def test_calls(server, store):
    """Reads wait for a server that is being started; writes too."""
    store.create_dataset("objects", "objects")
    made = store.create_object("objects", "{}")
    store.put_row("long", "r", {"c": "v"})
    for call in (
        lambda: store.get_objects("objects", [made])[0].id == made,
        lambda: store.get_rows("long", ["r"])[0][b"c"][0].value == b"v",
        lambda: len(store.get_row("long", "r")) == 1,
        lambda: store.list_partitions("long", 2),
        # The client had identified the server, so it retries this write under its request ID.
        lambda: store.create_object("objects", "{}") != made,
    ):
        server.end()
        again = threading.Thread(target=server.start)
        again.start()
        assert call()
        again.join()
    # Writes that are lost with the connection are in doubt if another server comes back. (Or they all go to that one,
    # if it is back already.)
    store.put_row("long", "r", {"c": "v"})
    server.end()
    again = threading.Thread(target=server.start)
    again.start()
    try:
        store.put_row("long", "r", {"c": "w"})
    except kvstore.Unavailable as error:
        assert error.in_doubt and "may or may not have happened" in str(error), error
    again.join()
    assert store.get_row("long", "r")[b"c"][0].value in (b"v", b"w")
    # The next write asks for the server's instance.
    store.put_row("long", "r", {"c": "x"})
    assert store.get_row("long", "r")[b"c"][0].value == b"x"


def test_reports(server, store):
    """A write under an ID counts once, however often its server is killed; queries wait for the server."""
    reports = store.reports()
    reports.create("hits", ["page"], ["views"], period="30d")
    ends = iter((signal.SIGKILL, signal.SIGTERM))
    starting = []

    def points():
        for at in range(210_000):
            # The batch before is on its way then.
            if at in (100_001, 200_001):
                for thread in starting:
                    thread.join()
                server.end(next(ends))
                starting.append(threading.Thread(target=server.start))
                starting[-1].start()
            yield Point("views", at // 100 * 1000, {"page": f"p{at % 100}"}, 1)

    assert reports.write("hits", points(), batch="load", add=True) == 210_000
    for thread in starting:
        thread.join()
    count = lambda: reports.query("hits", ["views"], 0, 2_100_000).series[0].points
    assert count() == [(0, 210_000)], count()
    server.end()
    again = threading.Thread(target=server.start)
    again.start()
    assert count() == [(0, 210_000)]
    again.join()
    # Without an ID it is in doubt, unless another server has it already.
    server.end()
    again = threading.Thread(target=server.start)
    again.start()
    try:
        reports.write("hits", [Point("views", 0, {"page": "p0"}, 1)])
    except kvstore.Unavailable as error:
        assert error.in_doubt, error
    again.join()
    assert count() == [(0, 210_000)], "it replaces what is there"


def openssl(*arguments):
    subprocess.run(("openssl",) + arguments, check=True, capture_output=True)


def make_certificates(folder):
    """Makes an authority, and certificates of it for "server" and "client"."""
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem")
    for name in ("server", "client"):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.csr")
        with open(f"{folder}/{name}.ext", "w") as file:
            file.write("subjectAltName=DNS:kv.example.com\n")
        signed = ("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-CAcreateserial", "-days", "2")
        files = ("-in", f"{folder}/{name}.csr", "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")
        openssl("x509", "-req", *signed, *files)


def test_certificates(kv, folder):
    """The server requires a certificate of its clients, and both sides are verified."""
    make_certificates(folder)
    tls = {"cert": f"{folder}/server.pem", "key": f"{folder}/server.key", "client_ca": f"{folder}/ca.pem"}
    ca, mine = f"{folder}/ca.pem", {"cert": f"{folder}/client.pem", "key": f"{folder}/client.key"}

    with Server(kv, write_config(folder, "tls", tls=tls)) as server:
        with connect(server.address, ca=ca, server_name="kv.example.com", **mine) as store:
            store.create_dataset("d")
            assert [one.name for one in store.list_datasets()] == ["d"]
        for options in ({}, {"ca": ca, "server_name": "kv.example.com"}, {"ca": ca, **mine}):
            with connect(server.address, **options) as store:
                try:
                    raise AssertionError(f"{options}: {store.list_datasets(timeout_s=1)}")
                except (kvstore.Unavailable, kvstore.DeadlineExceeded):
                    pass  # on a busy machine a handshake may take longer than the deadline


def main(kv, folder):
    with Server(kv, write_config(folder, "plain", limits={"drain_ms": 200})) as server:
        with connect(server.address, timeout_s=60) as store:
            test_scan(server, store)
            test_calls(server, store)
            test_reports(server, store)
    test_certificates(kv, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
