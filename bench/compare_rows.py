"""The rows of bench/compare's table: what is run, and what of it counts."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import typing

EVERY_BROKER = ("stoatd", "rabbitmq", "ceiling")
FILL_MESSAGES = {"stoatd": 2_000_000, "rabbitmq": 300_000}  # RabbitMQ is slow and large there
IDLE_OBJECTS = 10_000


@dataclasses.dataclass
class Bench:
    perf: pathlib.Path
    seconds: float
    tiny: bool
    folder: pathlib.Path

    def run_perf(self, broker, *arguments):
        """One run of stoat-perf; its JSON figures."""
        command = [self.perf, broker.uri, "--json", "--pid", str(broker.pid), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        lines = done.stdout.splitlines()
        if not lines or not lines[-1].startswith("{"):
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return json.loads(lines[-1])

    def few(self, count):
        return max(count // 1000, 2) if self.tiny else count


@dataclasses.dataclass
class Row:
    """`main` is the figure that ratios are made of; `goal` says in words what is to be reached, and
    reached(medians by broker, medians of all rows) whether it is (None: cannot be told)."""

    title: str
    run: typing.Callable
    main: str
    unit: str
    goal: str
    reached: typing.Callable
    brokers: tuple = EVERY_BROKER
    more: tuple = ()  # further figures worth a place in the table
    bars: bool = True


# --- plain rows: one run of stoat-perf ---

def plain(*arguments, seconds=None, fewer=None):
    """fewer: option and number that --tiny makes a thousandth of."""

    def run(bench, broker):
        words = list(arguments)
        if fewer is not None:
            words += [fewer[0], bench.few(fewer[1])]
        duration = bench.seconds * (seconds or 1)
        figures = bench.run_perf(broker, "-z", duration, *words)
        result = result_of(figures)
        result["elided"] = broker.elided_share()
        return result

    return run


def result_of(figures):
    return {
        "clean": figures["clean"],
        "sent_rate": figures["sent_rate"],
        "rate": figures["received_rate"],
        "cpu_us": figures["broker_cpu_us_per_message"],
        "delivery_p50": figures["delivery_ms"]["p50"],
        "delivery_p99": figures["delivery_ms"]["p99"],
        "confirm_p50": figures["confirm_ms"]["p50"],
        "confirm_p99": figures["confirm_ms"]["p99"],
        "rss_mb": figures["broker_rss_mb"],
    }


def window_1(bench, broker):
    """Beside it, what one append and fdatasync take on the same file system, then and there."""
    result = plain("-c", 1)(bench, broker)
    with tempfile.NamedTemporaryFile(dir=bench.folder) as file:
        took = []
        for _ in range(20 if bench.tiny else 300):
            began = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    result["sync_ms"] = statistics.median(took)
    result["confirm_above_sync"] = result["confirm_p50"] - result["sync_ms"]
    return result


# --- rows that look at the process and its files ---

class Watch:
    """Samples a broker's memory and write-ahead log while something runs."""

    INTERVAL_S = 0.05

    def __init__(self, broker):
        self.broker = broker
        self.rss_kb = [broker.rss_kb()]
        self.wal_live_peak = 0
        self.largest = {}  # of each log file that was ever seen
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def sample(self):
        while True:
            over = self.over.wait(self.INTERVAL_S)
            with contextlib.suppress(OSError):
                self.rss_kb.append(self.broker.rss_kb())
            sizes = self.broker.wal_files()
            self.wal_live_peak = max(self.wal_live_peak, sum(sizes.values()))
            for name, size in sizes.items():
                self.largest[name] = max(size, self.largest.get(name, 0))
            if over:
                return

    def wal_bytes(self):
        return sum(self.largest.values())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def fill_and_drain(bench, broker):
    count = bench.few(FILL_MESSAGES[broker.kind])
    with Watch(broker) as watch:
        fill = bench.run_perf(broker, "--fill", "-C", count, "-c", 1000)
    result = {"clean": fill["clean"], "fill_rate": fill["sent_rate"],
              "cpu_us": fill["broker_cpu_us_per_message"]}
    # Flat: what the second half of the fill added.
    half = len(watch.rss_kb) // 2
    result["growth_mb"] = (watch.rss_kb[-1] - watch.rss_kb[half]) / 1024
    peaks = [max(watch.rss_kb)]
    if broker.kind == "stoatd":
        result["wal_live_mb"] = watch.wal_live_peak / 1e6
        # Killed first, while the log still holds what the fill wrote last.
        broker.end(signal.SIGKILL)
        result["restart_after_kill_s"] = broker.start()
        broker.end(signal.SIGTERM)
        result["restart_s"] = broker.start()
    with Watch(broker) as watch:
        drain = bench.run_perf(broker, "--drain", "-a", 50)
    peaks.append(max(watch.rss_kb))
    result["clean"] = result["clean"] and drain["clean"] and drain["received"] >= count
    result["rate"] = drain["received_rate"]
    result["rss_mb"] = max(peaks) / 1024
    return result


def idle_objects(bench, broker):
    count = bench.few(IDLE_OBJECTS)
    settle_s = 0.1 if bench.tiny else 1
    before = broker.rss_kb()
    command = [bench.perf, broker.uri, "--idle-connections", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as holder:
        opened = holder.stdout.readline().startswith(f"{count} ")
        time.sleep(settle_s)
        with_connections = broker.rss_kb()
        holder.communicate("")
    # From a fresh start, for what connections leave behind is not the queues'.
    broker.end(signal.SIGTERM)
    broker.start()
    time.sleep(settle_s)
    before_queues = broker.rss_kb()
    subprocess.run([bench.perf, broker.uri, "--declare-queues", str(count)], check=True,
                   stdout=subprocess.DEVNULL)
    time.sleep(settle_s)
    with_queues = broker.rss_kb()
    broker.end(signal.SIGTERM)
    start_s = broker.start()
    return {"clean": opened and holder.returncode == 0,
            "connection_kb": (with_connections - before) / count,
            "queue_kb": (with_queues - before_queues) / count,
            "start_s": start_s}


def fanout_wal(bench, broker):
    """Without consumers, so that all of it is written: the log's growth for each body byte."""
    count = bench.few(1000)
    size = 16384
    with Watch(broker) as watch:
        figures = bench.run_perf(broker, "-t", "fanout", "-q", 10, "-y", 0, "-s", size, "-C", count,
                                 "-c", 100, "--keep")
        time.sleep(0.2)
    return {"clean": figures["clean"], "wal_per_copy": watch.wal_bytes() / (count * size)}


def idle(bench, broker):
    seconds = 0.3 if bench.tiny else 10
    time.sleep(0.1 if bench.tiny else 2)
    before = broker.wakeups()
    time.sleep(seconds)
    return {"clean": True, "wakeups": (broker.wakeups() - before) * 10 / seconds,
            "rss_mb": broker.rss_kb() / 1024}


# --- what is to be reached ---

def times(figure, factor, peer="rabbitmq"):
    """At least `factor` times the peer's figure."""

    def reached(medians, _):
        if peer not in medians:
            return None
        return medians["stoatd"][figure] >= factor * medians[peer][figure]

    return reached


def at_most(**limits):
    def reached(medians, _):
        return all(medians["stoatd"][figure] <= limit for figure, limit in limits.items())

    return reached


def all_of(*conditions):
    def reached(medians, everything):
        verdicts = [condition(medians, everything) for condition in conditions]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    return reached


def half_of_few_bindings(medians, everything):
    few = everything.get("topic", {}).get("stoatd")
    return None if few is None else medians["stoatd"]["rate"] >= few["rate"] / 2


def few_wakeups(medians, _):
    # A heartbeat timer and the disk's alarm are all that may run.
    return medians["stoatd"]["wakeups"] <= 20 and medians["stoatd"]["rss_mb"] <= 20


WITHOUT_CEILING = ("stoatd", "rabbitmq")
BASE = ("-c", 1000, "-a", 50)
TOPIC = (*BASE, "-t", "topic", "-x", 4, "-y", 4, "-q", 4)

ROWS = {
    "base": Row("1 KiB persistent, confirms (window 1000), 1×1", plain(*BASE), "rate", "msg/s",
                "≥ 16 × RabbitMQ, ≥ 0.30 × ceiling, ≤ 2.5 µs CPU",
                all_of(times("rate", 16), times("rate", 0.30, "ceiling"), at_most(cpu_us=2.5)),
                more=("delivery", "confirm")),
    "no-confirms": Row("same, no confirms, auto-ack", plain("-c", 0, "--auto-ack"), "rate", "msg/s",
                       "≥ 7 × RabbitMQ", times("rate", 7)),
    "transient": Row("100 B transient, no confirms, auto-ack",
                     plain("-c", 0, "--auto-ack", "-s", 100, "--transient"), "rate", "msg/s",
                     "≥ 12 × RabbitMQ", times("rate", 12)),
    "window-1": Row("window 1", window_1, "rate", "msg/s",
                    "delivery p50 ≤ 0.1 ms, confirm p50 ≤ 0.2 ms above one sync",
                    at_most(delivery_p50=0.1, confirm_above_sync=0.2),
                    more=("delivery", "confirm", "sync"), bars=False),
    "offered-5000": Row("5,000 msg/s offered, confirms", plain("-c", 1000, "-a", 1, "-r", 5000,
                                                               seconds=2.5), "rate", "msg/s",
                        "delivery p99 ≤ 2 ms, confirm p99 ≤ 3 ms",
                        at_most(delivery_p99=2, confirm_p99=3), more=("delivery", "confirm"),
                        bars=False),
    "fan-out": Row("fan-out to 10 queues, 10 consumers: deliveries",
                   plain(*BASE, "-t", "fanout", "-q", 10, "-y", 10), "rate", "msg/s",
                   "≥ 20 × RabbitMQ", times("rate", 20)),
    "16-kib": Row("16 KiB persistent, confirms", plain(*BASE, "-s", 16384), "rate", "msg/s",
                  "≥ 3 × RabbitMQ", times("rate", 3)),
    "ten": Row("10 producers, 10 queues, 10 consumers",
               plain(*BASE, "-x", 10, "-q", 10, "-y", 10), "rate", "msg/s",
               "≥ 16 × RabbitMQ", times("rate", 16)),
    "topic": Row("topic exchange, 2,000 bindings, 4×4",
                 plain(*TOPIC, fewer=("--bindings", 2000)), "rate", "msg/s",
                 "≥ 15 × RabbitMQ", times("rate", 15), brokers=WITHOUT_CEILING),
    "topic-100000": Row("same, 100,000 bindings", plain(*TOPIC, fewer=("--bindings", 100_000)),
                        "rate", "msg/s", "≥ half of that", half_of_few_bindings,
                        brokers=("stoatd",)),
    "prefetch-1": Row("prefetch 1, ack each", plain("-c", 1000, "-p", 1, "-a", 1), "rate", "msg/s",
                      "≥ 6 × RabbitMQ", times("rate", 6)),
    "fill": Row("2 million 1 KiB, nobody consuming; then drain", fill_and_drain, "fill_rate",
                "msg/s",
                "fill ≥ 14 ×, drain ≥ 20 × RabbitMQ; ≤ 150 MB, live WAL ≤ 100 MB; restart ≤ 0.5 s",
                all_of(times("fill_rate", 14), times("rate", 20),
                       at_most(rss_mb=150, wal_live_mb=100, restart_s=0.5,
                               restart_after_kill_s=0.5)),
                brokers=WITHOUT_CEILING,
                more=("drain", "memory", "growth", "wal-live", "restart")),
    "idle-objects": Row("10,000 idle connections; 10,000 durable queues", idle_objects,
                        "connection_kb", "KB each", "≤ 12 KB each; start ≤ 2 s",
                        at_most(connection_kb=12, queue_kb=12, start_s=2), brokers=("stoatd",),
                        more=("queue-kb", "start"), bars=False),
    "fan-out-wal": Row("16 KiB to 10 queues: WAL bytes", fanout_wal, "wal_per_copy",
                       "× one copy", "≤ 1.2 × one copy", at_most(wal_per_copy=1.2),
                       brokers=("stoatd",), bars=False),
    "idle": Row("idle, 10 s", idle, "wakeups", "wake-ups",
                "≤ 20 MB, no wake-ups beyond heartbeats", few_wakeups, brokers=WITHOUT_CEILING,
                more=("memory",), bars=False),
}
