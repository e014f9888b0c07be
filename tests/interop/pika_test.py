#!/usr/bin/python3
"""pika (Debian's python3-pika) against the broker at AMQP_PORT, 5672 unless set."""

import datetime
import decimal
import os
import time
import unittest
import uuid

import pika
import pika.exceptions

PORT = int(os.environ.get("AMQP_PORT", "5672"))
QUIET_S = 0.2


def connect(**options):
    return pika.BlockingConnection(pika.ConnectionParameters(
        host="127.0.0.1", port=PORT, **options))


class PikaTest(unittest.TestCase):
    def setUp(self):
        self.connection = connect()
        self.channel = self.connection.channel()
        self.names = []
        self.exchanges = []

    def tearDown(self):
        if not self.connection.is_open:
            self.connection = connect()
        channel = self.connection.channel()
        for name in self.names:
            channel.queue_delete(name)
        for name in self.exchanges:
            channel.exchange_delete(name)
        self.connection.close()

    def queue(self, **options):
        name = f"pika.{uuid.uuid4()}"
        self.names.append(name)
        self.channel.queue_declare(name, **options)
        return name

    def exchange(self, kind, **options):
        name = f"pika.{uuid.uuid4()}"
        self.exchanges.append(name)
        self.channel.exchange_declare(name, kind, **options)
        return name

    def drain(self, queue):
        bodies = []
        while True:
            method, _, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return bodies
            bodies.append(body)

    def count(self, queue):
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def wait_for(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come about")
            self.connection.process_data_events(0.02)

    # --- routing ---

    def test_topic_routing(self):
        exchange = self.exchange("topic")
        errors, kernel, everything = self.queue(), self.queue(), self.queue()
        self.channel.queue_bind(errors, exchange, "*.error")
        self.channel.queue_bind(kernel, exchange, "kernel.#")
        self.channel.queue_bind(everything, exchange, "#")
        for key in ("kernel.error", "kernel.info.detail", "mail.error", "kernel"):
            self.channel.basic_publish(exchange, key, key.encode())
        self.assertEqual(self.drain(errors), [b"kernel.error", b"mail.error"])
        self.assertEqual(self.drain(kernel), [b"kernel.error", b"kernel.info.detail", b"kernel"])
        self.assertEqual(len(self.drain(everything)), 4)

    def test_headers_exchange_and_exchange_binding(self):
        source, target = self.exchange("headers"), self.exchange("fanout")
        queue = self.queue()
        self.channel.exchange_bind(target, source, arguments={"x-match": "any", "a": 1, "b": "x"})
        self.channel.queue_bind(queue, target)
        for headers in ({"a": 1}, {"b": "x", "c": 2}, {"a": 2}):
            self.channel.basic_publish(source, "", str(headers).encode(),
                                       pika.BasicProperties(headers=headers))
        self.assertEqual(len(self.drain(queue)), 2)

    # --- publishing ---

    def test_confirms_and_returns(self):
        queue = self.queue(durable=True)
        self.channel.confirm_delivery()
        persistent = pika.BasicProperties(delivery_mode=2)
        for i in range(20):  # raises when nacked or returned
            self.channel.basic_publish("", queue, str(i).encode(), persistent, mandatory=True)
        with self.assertRaises(pika.exceptions.UnroutableError) as raised:
            self.channel.basic_publish("", "no such queue", b"back", persistent, mandatory=True)
        returned = raised.exception.messages[0]
        self.assertEqual(returned.method.reply_code, 312)
        self.assertEqual(returned.method.reply_text, "NO_ROUTE")
        self.assertEqual(returned.body, b"back")
        self.assertEqual(self.drain(queue), [str(i).encode() for i in range(20)])

    def test_returns_without_confirms(self):
        returned = []
        self.channel.add_on_return_callback(
            lambda channel, method, properties, body: returned.append((method.reply_code, body)))
        self.channel.basic_publish("", "no such queue", b"back", mandatory=True)
        self.wait_for(lambda: returned)
        self.assertEqual(returned, [(312, b"back")])

    def test_transactions(self):
        queue = self.queue()
        self.channel.tx_select()
        self.channel.basic_publish("", queue, b"rolled back")
        self.channel.tx_rollback()
        self.channel.basic_publish("", queue, b"committed")
        self.assertEqual(self.count(queue), 0)
        self.channel.tx_commit()
        self.assertEqual(self.drain(queue), [b"committed"])

    def test_big_bodies(self):
        queue = self.queue()
        for size in (0, 1, 131064, 131065, 5 * 1024 * 1024):
            body = os.urandom(size)
            self.channel.basic_publish("", queue, body)
            method, _, got = self.channel.basic_get(queue, auto_ack=True)
            self.assertIsNotNone(method)
            self.assertTrue(got == body, size)

    def test_every_header_type_and_property(self):
        queue = self.queue()
        headers = {
            "bool": True, "int": 1, "negative": -7, "byte": 127, "short": 32767, "long": 2 ** 31,
            "longest": 2 ** 63 - 1, "text": "Größe 兎", "bytes": b"\x00\xff",
            "decimal": decimal.Decimal("3.14"), "none": None,
            "time": datetime.datetime(2026, 1, 2, 3, 4, 5),
            "list": [1, "two", [3, None], {"four": False}],
            "table": {"inner": {"innermost": [True]}}, "empty": {}, "empty list": [],
        }
        sent = pika.BasicProperties(
            content_type="text/plain", content_encoding="utf-8", headers=headers, delivery_mode=2,
            priority=3, correlation_id="c", reply_to="r", expiration="60000", message_id="m",
            timestamp=1767225600, type="t", user_id="guest", app_id="a", cluster_id="cl")
        self.channel.basic_publish("", queue, b"body", sent)
        _, got, _ = self.channel.basic_get(queue, auto_ack=True)
        self.assertEqual(got, sent)
        self.assertEqual(got.headers, headers)

    # --- consuming ---

    def test_prefetch(self):
        queue = self.queue()
        for i in range(10):
            self.channel.basic_publish("", queue, str(i).encode())
        got = []
        self.channel.basic_qos(prefetch_count=3)
        self.channel.basic_consume(queue, lambda ch, method, props, body: got.append(method))
        self.wait_for(lambda: len(got) == 3)
        self.connection.process_data_events(QUIET_S)
        self.assertEqual(len(got), 3)
        self.channel.basic_ack(got[-1].delivery_tag, multiple=True)
        self.wait_for(lambda: len(got) == 6)
        self.connection.process_data_events(QUIET_S)
        self.assertEqual(len(got), 6)

    def test_requeue_keeps_the_order_and_marks(self):
        queue = self.queue()
        for i in range(5):
            self.channel.basic_publish("", queue, str(i).encode())
        tags = [self.channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
        self.channel.basic_nack(tags[2], requeue=True)
        self.channel.basic_reject(tags[0], requeue=True)
        self.channel.basic_ack(tags[1])
        got = []
        for _ in range(4):
            method, _, body = self.channel.basic_get(queue, auto_ack=True)
            got.append((body, method.redelivered))
        self.assertEqual(got, [(b"0", True), (b"2", True), (b"3", False), (b"4", False)])

    def test_a_closed_connection_returns_its_messages(self):
        queue = self.queue()
        self.channel.basic_publish("", queue, b"m")
        other = connect()
        self.wait_for(lambda: self.count(queue) == 1)
        other.channel().basic_get(queue)
        self.assertEqual(self.count(queue), 0)
        other.close()
        self.wait_for(lambda: self.count(queue) == 1)
        self.assertTrue(self.channel.basic_get(queue, auto_ack=True)[0].redelivered)

    def test_generator_consumer_and_cancel(self):
        queue = self.queue()
        for i in range(5):
            self.channel.basic_publish("", queue, str(i).encode())
        got = []
        for method, _, body in self.channel.consume(queue, inactivity_timeout=5):
            got.append(body)
            self.channel.basic_ack(method.delivery_tag)
            if len(got) == 3:
                break
        self.channel.cancel()  # gives back what was prefetched
        self.assertEqual(got, [b"0", b"1", b"2"])
        self.wait_for(lambda: self.count(queue) == 2)
        self.assertEqual(self.drain(queue), [b"3", b"4"])

    def test_a_deleted_queue_cancels_its_consumer(self):
        queue = self.queue()
        cancelled = []
        self.channel.add_on_cancel_callback(cancelled.append)
        tag = self.channel.basic_consume(queue, lambda *_: None)
        self.connection.channel().queue_delete(queue)
        self.wait_for(lambda: cancelled)
        self.assertEqual(cancelled[0].method.consumer_tag, tag)

    def test_exclusive_queues_and_consumers(self):
        queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.assertTrue(queue)
        other = connect()
        with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as raised:
            other.channel().queue_declare(queue, passive=True)
        self.assertEqual(raised.exception.reply_code, 405)
        shared = self.queue()
        self.channel.basic_consume(shared, lambda *_: None, exclusive=True)
        with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as raised:
            other.channel().basic_consume(shared, lambda *_: None)
        self.assertEqual(raised.exception.reply_code, 403)
        other.close()

    # --- errors, connections ---

    def test_errors_close_the_channel_alone(self):
        queue = self.queue()
        for provoke, code in (
                (lambda ch: ch.queue_declare("no such queue", passive=True), 404),
                (lambda ch: ch.exchange_delete("amq.topic"), 403),
                (lambda ch: ch.queue_declare(queue, durable=True), 406)):
            channel = self.connection.channel()
            with self.assertRaises(pika.exceptions.ChannelClosedByBroker) as raised:
                provoke(channel)
            self.assertEqual(raised.exception.reply_code, code)
        self.assertTrue(self.connection.is_open)
        self.assertEqual(self.drain(queue), [])

    def test_a_wrong_password_is_told(self):
        with self.assertRaises(pika.exceptions.ProbableAuthenticationError):
            connect(credentials=pika.PlainCredentials("guest", "wrong"))

    def test_an_unknown_vhost_is_told(self):
        with self.assertRaises(pika.exceptions.ProbableAccessDeniedError) as raised:
            connect(virtual_host="no such vhost")
        self.assertIn("NOT_ALLOWED - vhost no such vhost not found", repr(raised.exception))

    def test_small_frames_and_heartbeats(self):
        connection = connect(frame_max=8192, channel_max=10, heartbeat=1)
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        body = os.urandom(100000)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            connection.process_data_events(0.2)
        channel.basic_publish("", queue, body)
        self.assertTrue(channel.basic_get(queue, auto_ack=True)[2] == body)
        connection.close()

    def test_direct_reply_to(self):
        requests = self.queue()
        answers = []
        self.channel.basic_consume("amq.rabbitmq.reply-to",
                                   lambda ch, method, props, body: answers.append(body),
                                   auto_ack=True)
        self.channel.basic_publish("", requests, b"question",
                                   pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
        server = connect()
        responder = server.channel()
        self.wait_for(lambda: self.count(requests) == 1)
        _, properties, body = responder.basic_get(requests, auto_ack=True)
        responder.basic_publish("", properties.reply_to, b"re: " + body)
        self.wait_for(lambda: answers)
        self.assertEqual(answers, [b"re: question"])
        server.close()


if __name__ == "__main__":
    unittest.main()
