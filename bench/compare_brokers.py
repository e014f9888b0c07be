"""The brokers that bench/compare measures, each a process of its own: started, stopped, looked at."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
START_LIMIT_S = 90


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether a connection is accepted and greeted."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(PROTOCOL_HEADER)
            return connection.recv(1) == b"\x01"
    except OSError:
        return False


class Broker:
    """What all have in common. `start()` answers the seconds until it accepted a connection."""

    kind = ""

    def __init__(self):
        self.port = free_port()
        self.pid = 0

    @property
    def uri(self):
        return f"amqp://127.0.0.1:{self.port}"

    def wait_until_it_answers(self, began, alive):
        while not answers(self.port):
            if not alive():
                raise RuntimeError(f"{self.kind} ended while it started")
            if time.monotonic() - began > START_LIMIT_S:
                raise RuntimeError(f"{self.kind} does not answer")
            time.sleep(0.002)
        return time.monotonic() - began

    def status(self, key):
        """A line of /proc/PID/status, as a number."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        return 0

    def rss_kb(self):
        return self.status("VmRSS")

    def wakeups(self):
        """Voluntary context switches of all its threads."""
        total = 0
        for status in pathlib.Path(f"/proc/{self.pid}/task").glob("*/status"):
            for line in status.read_text("utf-8").splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    total += int(line.split()[1])
        return total

    def wal_files(self):
        """Sizes of its write-ahead log's files by name; empty where there are none to see."""
        return {}

    def elided_share(self):
        """Of the persistent messages, how many never had to be written; None: not to be had."""
        return None


class Process(Broker):
    """A broker that is one program of ours."""

    def __init__(self):
        super().__init__()
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        began = time.monotonic()
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        return self.wait_until_it_answers(began, lambda: self.process.poll() is None)

    def end(self, how):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def stop(self):
        self.end(signal.SIGTERM)


class Ceiling(Process):
    kind = "ceiling"

    def __init__(self, program):
        super().__init__()
        self.program = program
        self.start()

    def command(self):
        return [self.program, str(self.port)]


class Stoatd(Process):
    kind = "stoatd"

    def __init__(self, program, folder):
        super().__init__()
        self.program = program
        self.admin_port = free_port()
        self.data = pathlib.Path(folder) / f"stoatd-{self.port}"
        self.start()

    def command(self):
        return [self.program, "--data-dir", self.data, "--amqp-port", str(self.port),
                "--admin-port", str(self.admin_port), "--log-level", "warn"]

    def stop(self):
        super().stop()
        shutil.rmtree(self.data, ignore_errors=True)

    def wal_files(self):
        sizes = {}
        for file in (self.data / "db").glob("*.log"):
            try:
                sizes[file.name] = file.stat().st_size
            except FileNotFoundError:
                pass  # it went meanwhile
        return sizes

    def elided_share(self):
        counts = overview(self.admin_port).get("store")
        if not counts or counts["written"] + counts["elided"] == 0:
            return None
        return counts["elided"] / (counts["written"] + counts["elided"])


class RabbitMQ(Broker):
    """A node of its own in `folder`, gone afterwards; an installed service is left alone."""

    kind = "rabbitmq"
    SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    @classmethod
    def installed(cls):
        return os.access(cls.SERVER, os.X_OK)

    def __init__(self, folder):
        super().__init__()
        home = pathlib.Path(folder) / "rabbitmq"
        home.mkdir()
        (home / "plugins").write_text("[].", encoding="utf-8")
        environment = dict(
            os.environ, HOME=str(home), RABBITMQ_NODENAME=f"compare{self.port}@localhost",
            RABBITMQ_NODE_PORT=str(self.port), RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
            RABBITMQ_DIST_PORT=str(free_port()), RABBITMQ_MNESIA_BASE=str(home / "mnesia"),
            RABBITMQ_LOG_BASE=str(home / "log"), RABBITMQ_PID_FILE=str(home / "pid"),
            RABBITMQ_ENABLED_PLUGINS_FILE=str(home / "plugins"))
        began = time.monotonic()
        with open(home / "output", "wb") as output:
            self.process = subprocess.Popen([self.SERVER], env=environment, stdout=output,
                                            stderr=output, start_new_session=True)
        self.wait_until_it_answers(began, lambda: self.process.poll() is None)
        self.pid = self.find_pid()

    def find_pid(self):
        """The Erlang machine, which the start script runs below itself."""
        listing = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True,
                                 check=True).stdout
        children = {}
        for line in listing.splitlines():
            pid, above, name = line.split(None, 2)
            children.setdefault(int(above), []).append((int(pid), name))
        below = [(self.process.pid, "")]
        while below:
            pid, name = below.pop()
            if name == "beam.smp":
                return pid
            below.extend(children.get(pid, []))
        raise RuntimeError("RabbitMQ's process is not to be found")

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait()


def overview(port):
    """What stoatd's admin endpoint answers to overview.get."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        login = base64.b64encode(b"guest:guest").decode()
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall((f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nAuthorization: Basic {login}\r\n\r\n"
                            ).encode())
        stream = connection.makefile("rb")
        if b" 101 " not in stream.readline():
            raise RuntimeError("the admin endpoint refuses a WebSocket")
        while stream.readline().strip():
            pass
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "overview.get", "params": {}})
        # One masked text frame; a mask of zeros leaves the text as it is.
        connection.sendall(b"\x81" + bytes([0x80 | len(text)]) + bytes(4) + text.encode())
        size = stream.read(2)[1] & 0x7F
        if size == 126:
            size = struct.unpack(">H", stream.read(2))[0]
        return json.loads(stream.read(size))["result"]
