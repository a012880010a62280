"""Lets the tests of Redis itself talk to a server of KVStore.

Passes each command on to the server. The tests know no datasets, so this gives each key the dataset that fits the command: a hash or a string is a row of "rows", a stream the column "c" of a row of "streams",
a sorted set an ID of "sets". It writes in the form of the data model what has one, and answers turn it back:

  an entry's fields        one value, under the field v
  a member                 a number; with the same order, if it has at most 7 bytes
  a score                  a whole number with the same order
  the key of a sorted set  a number

Some commands that the port refuses are carried out as its advice says: MULTI and EXEC as a pipeline, FLUSHALL by SCAN and DEL,
ZCOUNT, ZRANK and ZMSCORE by reading. Settings that the tests change (CONFIG) are about how Redis encodes
its data, and are accepted. Everything else goes through as it is, so that what the server refuses fails its test."""
import json
import math
import re
import socket
import struct
import threading

DATASETS = {"rows": b"rows:", "streams": b"streams:", "sets": b"sets:"}
# Commands on keys of any type.
ON_ANY = {b"del", b"unlink", b"exists", b"type"}
LOCK = threading.Lock()


class Stream:
    """Reads and writes commands and answers. A value is (type, payload): bytes, or a list of values."""

    def __init__(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.file = connection.makefile("rb", buffering=1 << 16)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line.rstrip(b"\r\n")

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind in b"$=!" and kind:
            size = int(rest)
            if size < 0:
                return kind, None
            data = self.file.read(size + 2)
            if len(data) < size + 2:
                raise EOFError
            return kind, data[:-2]
        if kind in b"*~>%" and kind:
            count = int(rest)
            if count < 0:
                return kind, None
            return kind, [self.read() for _ in range(2 * count if kind == b"%" else count)]
        return kind, rest

    def command(self):
        """Returns the words of the next command, and its bytes. There are no words if the bytes are odd, or the last ones."""
        raw = self.file.readline(1 << 10)
        if re.fullmatch(rb"\w[^\"\\]*\r\n", raw):  # words on a line
            return raw.split(), raw
        if not re.fullmatch(rb"\*[1-9]\d{0,4}\r\n", raw):
            return [], raw
        words = []
        for _ in range(int(raw[1:])):
            head = self.file.readline(1 << 10)
            raw += head
            if not re.fullmatch(rb"\$\d{1,8}\r\n", head):
                return [], raw
            data = self.file.read(int(head[1:]) + 2)
            raw += data
            words.append(data[:-2])
        return words, raw

    def write(self, *values):
        self.connection.sendall(b"".join(map(encoded, values)))

    def close(self):
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.connection.close()

    def send(self, *commands):
        self.write(*((b"*", [(b"$", word) for word in words]) for words in commands))


def pump(source, sink):
    try:
        while data := source.file.read1(1 << 16):
            sink.connection.sendall(data)
        sink.connection.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()


def encoded(value):
    kind, payload = value
    if payload is None:
        return kind + b"-1\r\n"
    if isinstance(payload, list):
        count = len(payload) // 2 if kind == b"%" else len(payload)
        return b"%c%d\r\n" % (kind[0], count) + b"".join(map(encoded, payload))
    if kind in b"$=!":
        return b"%c%d\r\n" % (kind[0], len(payload)) + payload + b"\r\n"
    return kind + payload + b"\r\n"


def escaped(part):
    return part.replace(b"\\", b"\\\\").replace(b":", b"\\x3A")


class Numbers:
    """Gives texts numbers, from a first one on, and remembers them."""

    def __init__(self, first):
        self.first, self.of_text, self.texts = first, {}, []

    def of(self, text):
        with LOCK:
            if text not in self.of_text:
                self.of_text[text] = self.first + len(self.texts)
                self.texts.append(text)
            return self.of_text[text]

    def text(self, number):
        return self.texts[number - self.first]


SET_KEYS = Numbers(1)
LONG_MEMBERS = Numbers(1 << 60)


def key_in(family, key):
    """The key in the dataset of a family of commands."""
    if family == "sets":
        return b"%s%d" % (DATASETS["sets"], SET_KEYS.of(key))
    return DATASETS[family] + escaped(key) + (b":c" if family == "streams" else b"")


def member_number(member):
    if len(member) <= 7 and not member.endswith(b"\0"):
        return b"%d" % int.from_bytes(member.ljust(7, b"\0"), "big")
    return b"%d" % LONG_MEMBERS.of(member)


def member_name(number):
    number = int(number)
    return LONG_MEMBERS.text(number) if number >= LONG_MEMBERS.first else number.to_bytes(7, "big").rstrip(b"\0")


SCORES = {}  # by their numbers; "nan" has none


def score_number(score):
    """The bits of a double, in such a form that they have its order, but for the last one."""
    try:
        value = float(score.decode("ascii"))
    except ValueError:
        return score  # which the server refuses
    if math.isnan(value) or not score.strip() == score:
        return score
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    number = (bits ^ (2**64 - 1 if bits >> 63 else 2**63)) >> 1
    SCORES[number] = value + 0.0
    return b"%d" % number


def score_text(number):
    value = SCORES[int(number)]
    return b"%d" % value if math.isfinite(value) and value == int(value) and abs(value) < 1e17 else b"%.17g" % value


def bound_number(bound):
    return b"(" + score_number(bound[1:]) if bound.startswith(b"(") else score_number(bound)


def family_of(name):
    if name.startswith(b"z") or name in (b"bzpopmin", b"bzpopmax", b"bzmpop"):
        return "sets"
    return "streams" if name.startswith(b"x") else "rows"


class Client:
    """A connection of the tests, and the connection to the server that belongs to it."""

    def __init__(self, connection, port):
        self.near = Stream(connection)
        self.far = Stream(socket.create_connection(("127.0.0.1", port)))
        self.places = {}  # of keys, by command: first, last, step
        self.queue = None

    def call(self, *words):
        self.far.send(words)
        return self.far.read()

    def serve(self):
        try:
            while True:
                words, raw = self.near.command()
                if not words:
                    self.pass_on(raw)
                    break
                self.near.write(self.answer(words))
                if words[0].lower() == b"quit":
                    break
        except (EOFError, OSError):
            pass
        finally:
            for stream in (self.near, self.far):
                stream.close()

    def pass_on(self, raw):
        """Passes on everything as it is from now on, since it is for the server to judge."""
        self.far.connection.sendall(raw)
        threading.Thread(target=pump, args=(self.far, self.near), daemon=True).start()
        pump(self.near, self.far)

    def answer(self, words):
        name = words[0].lower()
        if name == b"multi" and self.queue is None:
            self.queue = []
            return b"+", b"OK"
        if name == b"discard" and self.queue is not None:
            self.queue = None
            return b"+", b"OK"
        if name == b"exec" and self.queue is not None:
            queue, self.queue = self.queue, None
            return b"*", [self.carry_out(queued) for queued in queue]
        if self.queue is not None:
            self.queue.append(words)
            return b"+", b"QUEUED"
        return self.carry_out(words)

    def carry_out(self, words):
        name = words[0].lower()
        if name == b"config" and len(words) > 2:
            if words[1].lower() == b"get":
                return b"*", [(b"$", words[2]), (b"$", b"0")]
            return b"+", b"OK"
        if name == b"function":
            return b"+", b"OK"
        if name == b"memory":
            return b":", b"1"
        if name in (b"flushall", b"flushdb"):
            return self.flush()
        if name in ON_ANY and len(words) > 1:
            return self.on_any(name, words[1:])
        if name == b"scan":
            return self.scan(words)
        if name in (b"zcount", b"zrank", b"zrevrank", b"zmscore") and len(words) > 2:
            return self.advised(name, words)
        return self.translated(name, words)

    def flush(self):
        cursor = b"0"
        while True:
            _, (after, keys) = self.call(b"SCAN", cursor, b"COUNT", b"1000")
            if keys[1]:
                self.call(b"DEL", *(key for _, key in keys[1]))
            cursor = after[1]
            if cursor == b"0":
                return b"+", b"OK"

    def on_any(self, name, keys):
        """A key may be in any of the datasets: asks all of them."""
        answers = {family: self.call(name, *(key_in(family, key) for key in keys)) for family in DATASETS}
        for answer in answers.values():
            if answer[0] == b"-":
                return answer
        if name == b"type":
            kinds = [answer for answer in answers.values() if answer[1] != b"none"]
            # The row of a stream is a hash, too; but TYPE is asked of its column here.
            return kinds[0] if kinds else (b"+", b"none")
        return b":", b"%d" % sum(int(answer[1]) for answer in answers.values())

    def scan(self, words):
        """Rows alone are listed: the tests do not mix types where they scan."""
        words = list(words)
        for i in range(2, len(words) - 1):
            if words[i].lower() == b"match":
                words[i + 1] = DATASETS["rows"] + words[i + 1].replace(b":", rb"\\x3A")
                break
        else:
            words += [b"MATCH", b"rows:*"]
        answer = self.call(*words)
        if answer[0] != b"-":
            found = answer[1][1]
            found[1][:] = [(kind, key.removeprefix(b"rows:").replace(b"\\x3A", b":").replace(b"\\\\", b"\\"))
                           for kind, key in found[1]]
        return answer

    def key_places(self, name):
        if name not in self.places:
            _, (info,) = self.call(b"COMMAND", b"INFO", name)
            self.places[name] = tuple(int(value) for _, value in info[1][3:6]) if info[1] else (0, 0, 0)
        return self.places[name]

    def translated(self, name, words):
        family = family_of(name)
        words = list(words)
        first, last, step = self.key_places(name)
        if first > 0:
            last = last if last >= 0 else len(words) + last
            for i in range(first, min(last, len(words) - 1) + 1, step):
                words[i] = key_in(family, words[i])
        lower = [word.lower() for word in words]
        if name == b"zadd":
            self.number_pairs(words)
        elif name in (b"zrem", b"zscore"):
            words[2:] = map(member_number, words[2:])
        elif name in (b"zrangebyscore", b"zrevrangebyscore") or name == b"zrange" and b"byscore" in lower:
            words[2:4] = map(bound_number, words[2:4])
        elif name == b"xadd":
            self.pack_fields(words)
        answer = self.call(*words)
        if name in (b"zrange", b"zrevrange", b"zrangebyscore", b"zrevrangebyscore"):
            self.name_members(answer, b"withscores" in lower[4:])
        elif name == b"zscan" and answer[0] == b"*":
            self.name_members(answer[1][1], True)
        elif name == b"zscore" and answer[0] in b"$," and answer[1]:
            answer = answer[0], score_text(answer[1].partition(b".")[0])
        elif name in (b"xrange", b"xrevrange"):
            self.unpack_fields(answer)
        return answer

    def advised(self, name, words):
        """Carries out a command on sorted sets as its error advises."""
        if name == b"zcount":
            found = self.translated(b"zrangebyscore", [b"ZRANGEBYSCORE", *words[1:]])
            return found if found[0] == b"-" else (b":", b"%d" % len(found[1]))
        if name == b"zmscore":
            return b"*", [self.translated(b"zscore", [b"ZSCORE", words[1], member]) for member in words[2:]]
        whole = b"zrange" if name == b"zrank" else b"zrevrange"
        members = [member for _, member in self.translated(whole, [whole, words[1], b"0", b"-1"])[1]]
        return (b":", b"%d" % members.index(words[2])) if words[2] in members else (b"$", None)

    @staticmethod
    def number_pairs(words):
        i = 2
        while i < len(words) and words[i].lower() in (b"nx", b"xx", b"gt", b"lt", b"ch", b"incr"):
            i += 1
        words[i::2] = map(score_number, words[i::2])
        words[i + 1 :: 2] = map(member_number, words[i + 1 :: 2])

    @staticmethod
    def name_members(answer, with_scores):
        if answer[0] != b"*" or not answer[1]:
            return
        if answer[1][0][0] == b"*":  # in RESP3: [member, score]
            for _, pair in answer[1]:
                pair[:] = [(b"$", member_name(pair[0][1])), (pair[1][0], score_text(pair[1][1].partition(b".")[0]))]
            return
        for i, (kind, number) in enumerate(answer[1]):
            is_score = with_scores and i % 2 == 1
            answer[1][i] = kind, score_text(number) if is_score else member_name(number)

    @staticmethod
    def pack_fields(words):
        """XADD key [options] id field value ...: the fields become one value."""
        for i, word in enumerate(words[2:], 2):
            if word == b"*" or re.fullmatch(rb"\d+(-(\d+|\*))?", word) and words[i - 1].lower() not in (
                    b"maxlen", b"minid", b"limit", b"=", b"~"):
                fields = words[i + 1 :]
                if fields and len(fields) % 2 == 0:
                    packed = json.dumps([field.decode("latin-1") for field in fields]).encode()
                    words[i + 1 :] = [b"v", packed]
                return

    @staticmethod
    def unpack_fields(answer):
        if answer[0] != b"*" or not answer[1]:
            return
        for _, (_, fields) in answer[1]:
            fields[1][:] = [(b"$", field.encode("latin-1")) for field in json.loads(fields[1][1][1])]


def start(port):
    """Serves the tests, on a port that is returned, from threads of this process. The server listens on the given port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=Client(connection, port).serve, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]
