"""Checks the arrows between the layers, which show in the include lines.

    base <- wire <- routing            base <- store
    {wire, routing, store} <- broker   wire <- client <- examples

The folder is the layer. Libraries that belong to one layer stay there: sockets and timers (Asio,
Beast) in broker/ and client/, RocksDB in store/, and what is slow to compile in one file.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the files of a folder may include, beside their own folder. The longest folder that matches
# a file counts.
ALLOWED = {
    "base": set(),
    "wire": {"base"},
    "routing": {"base", "wire"},
    "store": {"base"},
    "broker": {"base", "wire", "routing", "store"},
    "client": {"base", "wire"},
    "client/outbox": {"base", "wire", "client", "store"},
    "client/testing": {"base", "wire", "client", "store", "broker"},
    "client/ctl": {"client"},
    "examples": set(),  # public headers only, in angle brackets
    "bench": {"base", "wire", "routing", "store", "broker", "client"},
    "tests": {"base", "wire", "routing", "store", "broker", "client"},
    "tests/bench": {"base", "bench"},
}
LAYERS = {folder.split("/")[0] for folder in ALLOWED}

# Where headers of a library may be included: folders, or single files.
LIBRARIES = {
    "boost/asio": ("broker/", "client/", "tests/", "bench/"),
    "boost/beast": ("broker/", "client/", "tests/", "bench/"),
    "rocksdb/": ("store/", "client/outbox/", "tests/store/", "tests/crash/", "bench/"),
    "spdlog/": ("broker/log.cpp",),
    "toml++/": ("broker/config.cpp",),
    "CLI/": ("broker/config.cpp", "client/ctl/", "bench/"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(file):
    """The key of ALLOWED that holds for a file, as "client/ctl" for "client/ctl/main.cpp"."""
    matches = [folder for folder in ALLOWED if file.startswith(folder + "/")]
    return max(matches, key=len) if matches else None


def mistakes(file, text):
    """What the include lines of one file do wrong; `file` is relative to the root."""
    found = []
    folder = folder_of(file)
    layer = folder.split("/")[0]
    for bracket, header in INCLUDE.findall(text):
        target = header.split("/")[0]
        if target in LAYERS:
            if target != layer and target not in ALLOWED[folder]:
                found.append(f"{file}: {layer}/ must not include {header}")
        elif bracket == '"' and not header.startswith((*LIBRARIES, "stoat/")):
            # A header without a folder, beside a test of its own, hides no arrow.
            if layer != "tests" or "/" in header:
                found.append(f"{file}: {header} must be written from the root")
        for library, places in LIBRARIES.items():
            if header.startswith(library) and not file.startswith(places):
                found.append(f"{file}: {header} belongs in {' '.join(places)}")
    return found


def sources():
    for folder in sorted(LAYERS):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp") and "node_modules" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


class LayersTest(unittest.TestCase):
    def test_the_tree_keeps_the_arrows(self):
        count = 0
        found = []
        for file, text in sources():
            count += 1
            found += mistakes(file, text)
        self.assertGreater(count, 50, "the sources are elsewhere")
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_arrows_that_are_allowed(self):
        for file, line in [
            ("wire/frame.cpp", '#include "base/endian.hpp"'),
            ("wire/frame.cpp", '#include "wire/frame.hpp"'),
            ("wire/codec.hpp", "#include <boost/pfr/core.hpp>"),
            ("broker/main.cpp", '#include "store/open.hpp"'),
            ("broker/worker.cpp", "#include <boost/asio/post.hpp>"),
            ("client/ctl/main.cpp", '#include "client/session.hpp"'),
            ("client/testing/broker.cpp", '#include "broker/server.hpp"'),
            ("examples/topic_producer.cpp", "#include <stoat/client/blocking.hpp>"),
            ("tests/wire/frame_test.cpp", '#include "tests/support/frame_socket.hpp"'),
            ("tests/broker/home_test.cpp", '#include "home_driver.hpp"'),
            ("store/database.hpp", '#include "rocksdb/db.h"'),
        ]:
            self.assertEqual(mistakes(file, line), [], f"{file} {line}")

    def test_arrows_that_are_not(self):
        for file, line in [
            ("base/ids.hpp", '#include "wire/frame.hpp"'),
            ("wire/frame.cpp", '#include "broker/message.hpp"'),
            ("wire/frame.cpp", "  #  include <broker/message.hpp>"),
            ("routing/exchange.cpp", '#include "store/store.hpp"'),
            ("store/store.hpp", '#include "wire/frame.hpp"'),
            ("client/session.cpp", '#include "broker/message.hpp"'),
            ("examples/topic_producer.cpp", '#include "wire/frame.hpp"'),
            ("broker/queue.cpp", '#include "tests/support/frame_socket.hpp"'),
            ("broker/queue.cpp", '#include "message.hpp"'),
            ("broker/queue.cpp", '#include "../wire/frame.hpp"'),
            ("wire/frame.cpp", "#include <boost/asio/buffer.hpp>"),
            ("broker/server.cpp", "#include <rocksdb/db.h>"),
            ("store/group.cpp", "#include <spdlog/spdlog.h>"),
            ("broker/server.cpp", "#include <CLI/CLI.hpp>"),
        ]:
            self.assertEqual(len(mistakes(file, line)), 1, f"{file} {line}")


if __name__ == "__main__":
    sys.exit(unittest.main())
