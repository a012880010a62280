#!/usr/bin/env python3
"""Cuts the network of a fleet that operates itself, and looks whether there is ever a second master.

  partitions.py KV [CASE...]

Each host of the fleet, each process of kv operate and the clients have a network namespace of their own, so that any of
them can be cut off from any other, in one direction or both. Clients read and write all the time, and at the end there
must be an order that explains all that they were told. Needs root, iproute2, MariaDB and ZooKeeper; ends with 77 where
it may not make network namespaces. With KV_TEST_MYSQL, the folder that demo/mysql-root makes, the servers are MySQL's.
CASEs are the functions below that begin with "case_", without that.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NETWORK = "10.231.7."
ZOOKEEPER = NETWORK + "2"
CLIENTS = NETWORK + "3"
OPERATORS = [NETWORK + str(n) for n in (4, 5, 6)]
MYSQL = os.environ.get("KV_TEST_MYSQL")
SHOW_FOLLOWING = "SHOW REPLICA STATUS" if MYSQL else "SHOW SLAVE STATUS"
# Nothing must happen for so long: three times what it takes to find out that a master is dead.
QUIET_S = 15


def host_address(pair, letter):
    return NETWORK + str(20 + 2 * pair + "AB".index(letter))


class Network:
    """Namespaces that are joined by a bridge, one for each address."""

    def __init__(self):
        self.name = f"kv{os.getpid()}"
        self.made = []
        self.hub = self._make("hub")
        self.ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.hub, "link", "set", "bridge", "up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def _make(self, name):
        full = f"{self.name}-{name}"
        self.ip("netns", "add", full)
        self.made.append(full)
        return full

    def space(self, address):
        return f"{self.name}-{address.rpartition('.')[2]}"

    def add(self, address):
        last = address.rpartition(".")[2]
        space = self._make(last)
        self.ip("-n", self.hub, "link", "add", f"v{last}", "type", "veth", "peer", "name", "eth0", "netns", space)
        self.ip("-n", self.hub, "link", "set", f"v{last}", "master", "bridge", "up")
        self.ip("-n", space, "link", "set", "lo", "up")
        self.ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("-n", space, "link", "set", "eth0", "up")

    def mute(self, one, other):
        """From now on nothing that `one` sends arrives at `other`."""
        self.ip("-n", self.space(one), "route", "add", "blackhole", f"{other}/32")

    def cut(self, one, other):
        self.mute(one, other)
        self.mute(other, one)

    def heal(self, one, other):
        for here, there in ((one, other), (other, one)):
            subprocess.run(["ip", "-n", self.space(here), "route", "del", "blackhole", f"{there}/32"],
                           capture_output=True, check=False)

    def run(self, address, command, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.space(address), *command], **more)

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


class Fleet:
    """Pairs of MariaDB servers, ZooKeeper, three processes of kv operate, and clients."""

    def __init__(self, kv, network, folder, pairs):
        self.kv = kv
        self.network = network
        self.folder = folder
        self.pairs = pairs
        self.processes = {}
        self.everybody = [ZOOKEEPER, CLIENTS, *OPERATORS,
                          *(host_address(pair, letter) for pair in range(pairs) for letter in "AB")]
        for address in self.everybody:
            network.add(address)
        self._start_zookeeper()
        for pair in range(pairs):
            for letter in "AB":
                self.start_server(pair, letter, new=True)
        for pair in range(pairs):
            self._replicate(pair)
        self._write_maps()

    # ---- processes ----

    def run(self, name, address, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = self.network.run(address, command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def pid(self, name):
        """`ip netns exec` becomes the program that it runs."""
        return self.processes[name].pid

    def close(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
        for process in self.processes.values():
            process.wait()

    def _start_zookeeper(self):
        home = self.folder / "zookeeper"
        home.mkdir()
        (home / "zoo.cfg").write_text(
            f"tickTime=1000\ndataDir={home}/data\nclientPort=2181\nclientPortAddress={ZOOKEEPER}\n"
            "admin.enableServer=false\nminSessionTimeout=2000\n")
        self.run("zookeeper", ZOOKEEPER,
                 ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", "/usr/share/java/zookeeper.jar",
                  "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")])

    def start_server(self, pair, letter, new=False):
        name = f"{pair}{letter}"
        home = self.folder / name
        address = host_address(pair, letter)
        place = ["--user=root", f"--datadir={home}/data", f"--tmpdir={home}/tmp", f"--socket={home}/socket", "--port=3306",
                 f"--bind-address={address}", "--skip-name-resolve", f"--server-id={10 + 2 * pair + 'AB'.index(letter)}",
                 "--sync-binlog=1", "--max-allowed-packet=64M", "--log-bin-trust-function-creators=1"]
        if new:
            (home / "tmp").mkdir(parents=True)
        if MYSQL:
            self._start_mysql(name, address, place, new)
        else:
            self._start_mariadb(name, address, [*place, f"--gtid-domain-id={pair + 1}"], new)
        await_that(f"{name} answers", lambda: self.sql(pair, letter, "SELECT 1") == "1")

    def _start_mysql(self, name, address, place, new):
        program = f"{MYSQL}/kvstore-mysqld"
        if new:
            subprocess.run([program, "--user=root", "--initialize-insecure", "--innodb-redo-log-capacity=32M",
                            f"--datadir={self.folder / name}/data"], check=True, capture_output=True)
        self.run(name, address,
                 [program, *place, "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
                  "--relay-log-recovery=ON", "--super-read-only=ON",
                  "--plugin-load-add=semisync_source.so;semisync_replica.so;mysql_clone.so",
                  "--rpl-semi-sync-replica-enabled=1", "--rpl-semi-sync-source-timeout=4000000",
                  "--replica-net-timeout=4", "--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=32M",
                  "--mysqlx=OFF"])

    def _start_mariadb(self, name, address, place, new):
        home = self.folder / name
        if new:
            subprocess.run(["mariadb-install-db", "--no-defaults", "--force", f"--datadir={home}/data", "--user=root",
                            "--auth-root-authentication-method=normal", "--skip-test-db"], check=True,
                           capture_output=True, env={**os.environ, "TMPDIR": str(home / "tmp")})
        self.run(name, address,
                 ["mariadbd", "--no-defaults", *place, "--log-bin", "--gtid-strict-mode=1", "--log-slave-updates",
                  "--read-only=1", "--init-rpl-role=SLAVE", "--rpl-semi-sync-slave-enabled=1",
                  "--rpl-semi-sync-master-timeout=4000000", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                  "--slave-net-timeout=4", "--innodb-buffer-pool-size=24M", "--innodb-log-file-size=8M",
                  "--performance-schema=0"])

    def sql(self, pair, letter, text):
        """Runs SQL by the socket, which no cut reaches. Returns None if the server does not answer."""
        done = subprocess.run(["mariadb", "--no-defaults", f"--socket={self.folder}/{pair}{letter}/socket", "--user=root",
                               "--batch", "--skip-column-names", "-e", text], capture_output=True, text=True, check=False,
                              timeout=60)
        return done.stdout.strip() if done.returncode == 0 else None

    def _replicate(self, pair):
        a, b = "AB"
        if MYSQL:
            self.must(pair, a, "SET GLOBAL super_read_only=0")  # it holds for administrators, too
        for user, rights in (("repl", "REPLICATION SLAVE ON *.*"), ("operator", "ALL ON *.*"),
                             ("kvstore", "ALL ON `db%`.*"), ("kvstore", "ALL ON `mod%`.*")):
            self.must(pair, a, f"CREATE USER IF NOT EXISTS {user}@'{NETWORK}%' IDENTIFIED BY '{user}'; "
                               f"GRANT {rights} TO {user}@'{NETWORK}%'")
        if MYSQL:
            self.must(pair, a, f"GRANT BACKUP_ADMIN ON *.* TO repl@'{NETWORK}%'")
            self.must(pair, b, f"CHANGE REPLICATION SOURCE TO source_host='{host_address(pair, a)}', source_user='repl', "
                               "source_password='repl', source_auto_position=1, get_source_public_key=1, "
                               "source_connect_retry=1, source_retry_count=4294967295, source_heartbeat_period=2; "
                               "START REPLICA")
            self.must(pair, a, "SET GLOBAL rpl_semi_sync_replica_enabled=OFF, rpl_semi_sync_source_enabled=ON")
        else:
            self.must(pair, b, f"CHANGE MASTER TO master_host='{host_address(pair, a)}', master_user='repl', "
                               "master_password='repl', master_use_gtid=slave_pos, master_connect_retry=1; START SLAVE")
            self.must(pair, a, "SET GLOBAL rpl_semi_sync_slave_enabled=OFF, rpl_semi_sync_master_enabled=ON")
        clients = f"SHOW STATUS LIKE 'Rpl_semi_sync_{'source' if MYSQL else 'master'}_clients'"
        await_that(f"pair {pair} replicates", lambda: (self.sql(pair, a, clients) or "").endswith("\t1"))
        self.must(pair, a, "SET GLOBAL read_only=0")

    def must(self, pair, letter, text):
        if self.sql(pair, letter, text) is None:
            raise SystemExit(f"{pair}{letter} refuses: {text}")

    def _write_maps(self):
        mysql = {"type": "mysql", "user": "kvstore", "password": "kvstore"}
        config = {"data": "store", "zookeeper": {"servers": f"{ZOOKEEPER}:2181", "session_timeout_ms": 4000},
                  "default_backend": "mysql", "backends": {"mysql": mysql}}
        (self.folder / "kv.json").write_text(json.dumps(config))
        mysql["operator"] = {"user": "operator", "password": "operator"}
        mysql["replication"] = {"user": "repl", "password": "repl"}
        for number in range(len(OPERATORS)):
            config["data"] = f"operator-{number}"
            config["operate"] = {"journal": f"journal-{number}", "purge_hour": 24}
            (self.folder / f"operator-{number}.json").write_text(json.dumps(config))
        ranges = [{"range": [2 * pair, 2 * pair + 1], "master": host_address(pair, "A"), "slave": host_address(pair, "B")}
                  for pair in range(self.pairs)]
        (self.folder / "map.json").write_text(json.dumps(ranges))
        await_that("ZooKeeper answers", lambda: self.command(
            "shards", "set", str(self.folder / "map.json"), "--yes") is not None)
        self.command("shards", "set", "--mod", str(self.folder / "map.json"), "--yes", check=True)
        self.command("shards", "init", check=True)

    def command(self, *words, check=False, at=CLIENTS):
        """Runs kv as an operator does, where the clients are. Returns what it prints; None if it fails."""
        done = subprocess.run(["ip", "netns", "exec", self.network.space(at), self.kv, "--config",
                               str(self.folder / "operator-0.json"), *words], capture_output=True, text=True, check=False)
        if done.returncode != 0 and check:
            raise SystemExit(f"kv {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout if done.returncode == 0 else None

    # ---- what is so ----

    def operate(self):
        for number, address in enumerate(OPERATORS):
            self.run(f"operator-{number}", address,
                     [self.kv, "--config", str(self.folder / f"operator-{number}.json"), "operate"])
        self.command("operate", "on", "--all", check=True)
        await_that("a process leads", lambda: self.leader() is not None)
        # This records that the slaves have all that their masters have; a promotion needs that.
        await_that("all is well", lambda: self.command("shards", "status") is not None)

    def leader(self):
        """The number of the process that leads."""
        text = subprocess.run(["ip", "netns", "exec", self.network.space(CLIENTS), self.kv, "--config",
                               str(self.folder / "operator-0.json"), "operate", "status", "--json"], capture_output=True,
                              text=True, check=False).stdout
        if not text:
            return None
        for member in json.loads(text.splitlines()[0])["members"]:
            if member["leads"]:
                pid = int(member["who"].rpartition(" ")[2])
                for number in range(len(OPERATORS)):
                    if self.pid(f"operator-{number}") == pid:
                        return number
        return None

    def events(self, kind):
        found = []
        for number in range(len(OPERATORS)):
            path = self.folder / f"journal-{number}"
            if path.exists():
                found += [json.loads(line) for line in path.read_text().splitlines()]
        return [event for event in found if event["kind"] == kind]

    def master(self, pair):
        """By the map."""
        text = self.command("shards", "get", "--mod")
        if text is None:
            return None
        for entry in json.loads(text):
            if entry["range"][0] == 2 * pair:
                return "A" if entry["master"] == host_address(pair, "A") else "B"
        raise SystemExit(f"the map lacks the pair {pair}")

    def takes_writes(self, pair, letter):
        return self.master(pair) == letter and self.sql(pair, letter, "SELECT @@read_only") == "0"

    def await_replaced(self, pair, since):
        await_that(f"pair {pair}: B takes writes", lambda: self.takes_writes(pair, "B"))
        print(f"  {time.monotonic() - since:.1f} s until its slave takes writes", flush=True)

    def hears(self, pair):
        """Whether B receives from A."""
        if MYSQL:
            return self.sql(pair, "B", "SELECT service_state FROM performance_schema.replication_connection_status") == "ON"
        waiting = ("SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Slave_IO' AND "
                   "state LIKE 'Waiting for master to send event%'")
        return self.sql(pair, "B", waiting) == "1"

    def stays(self, pair, what):
        """For a while the master stays what it is."""
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            if self.master(pair) == "B":
                raise SystemExit(f"pair {pair} was promoted although {what}")
            time.sleep(0.5)


def await_that(what, holds, seconds=90):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"this did not come true: {what}")
        time.sleep(0.1)


# ---- the cases: each has a pair of its own ----


def case_killed(fleet, pair):
    """The master is killed, and comes back."""
    since = time.monotonic()
    os.kill(fleet.pid(f"{pair}A"), signal.SIGKILL)
    fleet.processes[f"{pair}A"].wait()
    fleet.await_replaced(pair, since)
    fleet.start_server(pair, "A")
    # Unless it has a last transaction that its slave never got, which a person is told.
    await_that("it follows, or a person is told", lambda: fleet.sql(pair, "A", SHOW_FOLLOWING) or any(
        host_address(pair, "A") in event["subject"] for event in fleet.events("alarm")))


def separate(fleet, pair, separated):
    """Separates a master from everybody until its slave has taken its place; it comes back taking writes."""
    master = host_address(pair, "A")
    others = [address for address in fleet.everybody if address != master]
    since = time.monotonic()
    for other in others:
        separated(master, other)
    fleet.await_replaced(pair, since)
    for other in others:
        fleet.network.heal(master, other)
    await_that("it was fenced", lambda: fleet.sql(pair, "A", "SELECT @@read_only") == "1")


def case_cut_off(fleet, pair):
    """The master is cut off from everybody, both ways, and comes back taking writes."""
    separate(fleet, pair, fleet.network.cut)


def case_mute(fleet, pair):
    """Nothing that the master sends arrives; what others send does."""
    separate(fleet, pair, fleet.network.mute)


def case_paused_leader(fleet, pair):
    """The leader is stopped when the master dies, and goes on behind its successor's back."""
    leader = fleet.leader()
    since = time.monotonic()
    os.kill(fleet.pid(f"operator-{leader}"), signal.SIGSTOP)
    os.kill(fleet.pid(f"{pair}A"), signal.SIGKILL)
    fleet.processes[f"{pair}A"].wait()
    fleet.await_replaced(pair, since)
    os.kill(fleet.pid(f"operator-{leader}"), signal.SIGCONT)
    await_that("another one leads", lambda: fleet.leader() not in (None, leader))
    end = time.monotonic() + QUIET_S
    while time.monotonic() < end:
        if not fleet.takes_writes(pair, "B"):
            raise SystemExit("the leader that was paused has changed something")
        time.sleep(0.5)


def case_lonely_leader(fleet, pair):
    """The leader is cut off from ZooKeeper and the other processes when the master dies."""
    leader = fleet.leader()
    others = [ZOOKEEPER, *(address for number, address in enumerate(OPERATORS) if number != leader)]
    since = time.monotonic()
    for other in others:
        fleet.network.cut(OPERATORS[leader], other)
    os.kill(fleet.pid(f"{pair}A"), signal.SIGKILL)
    fleet.processes[f"{pair}A"].wait()
    fleet.await_replaced(pair, since)
    for other in others:
        fleet.network.heal(OPERATORS[leader], other)


def case_reached(fleet, pair):
    """The master is cut off from some: nobody replaces it as long as it serves."""
    master, slave = host_address(pair, "A"), host_address(pair, "B")
    for others, what in (([ZOOKEEPER], "only ZooKeeper cannot reach its master"),
                         ([CLIENTS], "only clients cannot reach its master"),
                         ([slave], "only its slave cannot reach its master"),
                         (OPERATORS, "its slave hears its master"),
                         (OPERATORS[:1] + [slave], "two processes of kv operate reach its master")):
        print(f"  {what}", flush=True)
        for other in others:
            fleet.network.cut(master, other)
        fleet.stays(pair, what)
        for other in others:
            fleet.network.heal(master, other)
        # Until then the slave has lost it, too, and a cut from all others would be its death.
        await_that("its slave hears the master again", lambda: fleet.hears(pair))


def main():
    kv = str(pathlib.Path(sys.argv[1]).resolve())
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    chosen = sys.argv[2:] or list(cases)
    for name in chosen:
        if name not in cases:
            raise SystemExit(f"there is no case {name}; these are: {', '.join(cases)}")
    probed = f"kv{os.getpid()}"
    for words in (["netns", "add", probed], ["-n", probed, "link"], ["netns", "del", probed]):
        probe = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            subprocess.run(["ip", "netns", "del", probed], capture_output=True, check=False)
            print(f"skipped: network namespaces cannot be made or entered: {probe.stderr.strip()}")
            sys.exit(77)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kvstore-partitions-"))
    network = fleet = None
    kept = True
    try:
        network = Network()
        fleet = Fleet(kv, network, folder, len(chosen))
        fleet.operate()
        clients = network.run(CLIENTS, [kv, "--config", str(folder / "kv.json"), "bench", "clients"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        await_that("the clients have begun", lambda: "kv_bench_clients" in (fleet.command("dataset", "list") or ""))
        for pair, name in enumerate(chosen):
            print(f"{name}: {cases[name].__doc__}", flush=True)
            cases[name](fleet, pair)
        verdict, _ = clients.communicate(timeout=120)
        print(verdict)
        if clients.returncode != 0:
            raise SystemExit("what the clients were told is wrong")
        kept = False
    finally:
        if fleet is not None:
            fleet.close()
        if network is not None:
            network.close()
        if kept:
            print(f"the logs are in {folder}", flush=True)
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
