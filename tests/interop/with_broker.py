#!/usr/bin/env python3
"""Runs a command against a broker of its own: with_broker.py STOATD COMMAND [ARGUMENT...]

Starts STOATD on a fresh data folder and a free port, runs the command with AMQP_PORT and AMQP_URL
set, stops the broker by its process id. Ends with the command's status, or with 1 when the broker
did not come up or did not stop cleanly. The command itself knows nothing of StoatMQ: without this
script, `AMQP_PORT=5672 COMMAND` runs it against whatever broker listens there.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

START_LIMIT_S = 30
STOP_LIMIT_S = 30
LISTENING = re.compile(r"listening for AMQP on 127\.0\.0\.1:(\d+)")


def wait_for_port(broker, log_path):
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and broker.poll() is None:
        with open(log_path, encoding="utf-8") as log:
            found = LISTENING.search(log.read())
        if found:
            return found.group(1)
        time.sleep(0.01)
    return None


def main():
    stoatd, command = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="stoat-interop-") as folder:
        log_path = os.path.join(folder, "log")
        with open(log_path, "w", encoding="utf-8") as log:
            broker = subprocess.Popen(
                [stoatd, "--data-dir", os.path.join(folder, "data"), "--amqp-port", "0",
                 "--admin-port", "0", "--log-level", "info"], stderr=log, stdout=log)
        status = 1
        try:
            port = wait_for_port(broker, log_path)
            if port is not None:
                environment = dict(os.environ, AMQP_PORT=port,
                                   AMQP_URL=f"amqp://guest:guest@127.0.0.1:{port}")
                status = subprocess.call(command, env=environment)
        finally:
            broker.terminate()
            try:
                ended = broker.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                broker.kill()
                ended = broker.wait()
            if ended != 0:
                print(f"stoatd ended with {ended}", file=sys.stderr)
                status = status or 1
            if status != 0:
                with open(log_path, encoding="utf-8") as log:
                    sys.stderr.write(log.read())
    return status


if __name__ == "__main__":
    sys.exit(main())
