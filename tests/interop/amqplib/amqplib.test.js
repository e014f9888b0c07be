// amqplib against the broker at AMQP_URL, amqp://guest:guest@127.0.0.1:5672 unless set.
'use strict';

const { test, beforeEach, afterEach } = require('node:test');
const assert = require('node:assert/strict');
const { randomBytes, randomUUID } = require('node:crypto');
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const amqp = require('amqplib');

const URL = process.env.AMQP_URL || 'amqp://guest:guest@127.0.0.1:5672';
const QUIET_MS = 200;

let connection;
let channel;
let queues;
let exchanges;

beforeEach(async () => {
  connection = await amqp.connect(URL);
  channel = await connection.createChannel();
  queues = [];
  exchanges = [];
});

afterEach(async () => {
  const last = await connection.createChannel();
  for (const queue of queues) await last.deleteQueue(queue);
  for (const exchange of exchanges) await last.deleteExchange(exchange);
  await connection.close();
});

async function newQueue(options = { durable: false }) {
  const name = `amqplib.${randomUUID()}`;
  queues.push(name);
  await channel.assertQueue(name, options);
  return name;
}

async function newExchange(type) {
  const name = `amqplib.${randomUUID()}`;
  exchanges.push(name);
  await channel.assertExchange(name, type, { durable: false });
  return name;
}

async function drain(queue) {
  const bodies = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (!message) return bodies;
    bodies.push(message.content.toString());
  }
}

async function waitFor(condition) {
  for (let i = 0; i < 500; ++i) {
    if (await condition()) return;
    await sleep(20);
  }
  assert.fail('it did not come about');
}

const count = async (queue) => (await channel.checkQueue(queue)).messageCount;

test('topic routing', async () => {
  const exchange = await newExchange('topic');
  const one = await newQueue();
  const many = await newQueue();
  await channel.bindQueue(one, exchange, 'a.*.c');
  await channel.bindQueue(many, exchange, 'a.#');
  for (const key of ['a.b.c', 'a', 'a.b.c.d', 'b.b.c']) {
    channel.publish(exchange, key, Buffer.from(key));
  }
  assert.deepEqual(await drain(one), ['a.b.c']);
  assert.deepEqual(await drain(many), ['a.b.c', 'a', 'a.b.c.d']);
});

test('exchange bindings and alternate exchanges', async () => {
  const source = await newExchange('direct');
  const target = await newExchange('fanout');
  const queue = await newQueue();
  await channel.bindExchange(target, source, 'k');
  await channel.bindQueue(queue, target, '');
  const main = `amqplib.${randomUUID()}`;
  exchanges.push(main);
  await channel.assertExchange(main, 'direct', { durable: false, alternateExchange: target });
  channel.publish(source, 'k', Buffer.from('bound'));
  channel.publish(source, 'other', Buffer.from('not bound'));
  channel.publish(main, 'unknown', Buffer.from('alternate'));
  assert.deepEqual(await drain(queue), ['bound', 'alternate']);
});

test('confirms and returns', async () => {
  const queue = await newQueue({ durable: true });
  const confirming = await connection.createConfirmChannel();
  const events = [];
  confirming.on('return', (message) => events.push(`return ${message.fields.replyCode} ${message.content}`));
  for (let i = 0; i < 200; ++i) {
    const to = i % 50 === 49 ? 'no such queue' : queue;
    confirming.sendToQueue(to, Buffer.from(String(i)), { persistent: true, mandatory: true },
      (error) => events.push(`${error ? 'nack' : 'ack'} ${i}`));
  }
  await confirming.waitForConfirms();
  assert.equal(events.length, 204);
  for (const i of [49, 99, 149, 199]) {
    const returned = events.indexOf(`return 312 ${i}`);
    assert.ok(returned >= 0 && returned < events.indexOf(`ack ${i}`), `return ${i} before its ack`);
  }
  assert.equal(await count(queue), 196);
  await confirming.close();
});

test('prefetch', async () => {
  const queue = await newQueue();
  for (let i = 0; i < 10; ++i) channel.sendToQueue(queue, Buffer.from(String(i)));
  const got = [];
  await channel.prefetch(3);
  await channel.consume(queue, (message) => got.push(message));
  await waitFor(() => got.length === 3);
  await sleep(QUIET_MS);
  assert.equal(got.length, 3);
  channel.ack(got[2], true);
  await waitFor(() => got.length === 6);
  await sleep(QUIET_MS);
  assert.equal(got.length, 6);
});

test('prefetch for the whole channel', async () => {
  const queue = await newQueue();
  for (let i = 0; i < 10; ++i) channel.sendToQueue(queue, Buffer.from(String(i)));
  const got = [];
  await channel.prefetch(4, true);
  await channel.consume(queue, (message) => got.push(message));
  await channel.consume(queue, (message) => got.push(message));
  await waitFor(() => got.length === 4);
  await sleep(QUIET_MS);
  assert.equal(got.length, 4);
  channel.ackAll();
  await waitFor(() => got.length === 8);
});

test('requeue keeps the order and marks', async () => {
  const queue = await newQueue();
  for (let i = 0; i < 5; ++i) channel.sendToQueue(queue, Buffer.from(String(i)));
  const taken = [];
  for (let i = 0; i < 3; ++i) taken.push(await channel.get(queue));
  channel.nack(taken[2], false, true);
  channel.reject(taken[0], true);
  channel.ack(taken[1]);
  const got = [];
  for (let i = 0; i < 4; ++i) {
    const message = await channel.get(queue, { noAck: true });
    got.push([message.content.toString(), message.fields.redelivered]);
  }
  assert.deepEqual(got, [['0', true], ['2', true], ['3', false], ['4', false]]);
});

test('recover', async () => {
  const queue = await newQueue();
  for (let i = 0; i < 3; ++i) channel.sendToQueue(queue, Buffer.from(String(i)));
  for (let i = 0; i < 3; ++i) await channel.get(queue);
  await channel.recover();
  assert.deepEqual(await drain(queue), ['0', '1', '2']);
});

test('big bodies', async () => {
  const queue = await newQueue();
  for (const size of [0, 1, 131064, 131065, 5 * 1024 * 1024]) {
    const body = randomBytes(size);
    channel.sendToQueue(queue, body);
    const message = await channel.get(queue, { noAck: true });
    assert.ok(message.content.equals(body), `${size} bytes`);
  }
});

test('small frames', async () => {
  const small = await amqp.connect(`${URL}?frameMax=8192&channelMax=5&heartbeat=5`);
  const other = await small.createChannel();
  const { queue } = await other.assertQueue('', { exclusive: true });
  const body = randomBytes(100000);
  other.sendToQueue(queue, body);
  assert.ok((await other.get(queue, { noAck: true })).content.equals(body));
  await small.close();
});

test('every header type and property', async () => {
  const queue = await newQueue();
  const headers = {
    text: 'Größe 兎',
    yes: true,
    no: false,
    nothing: null,
    int: 1,
    negative: -200,
    large: 5000000000,
    fraction: 0.1,
    bytes: Buffer.from([0, 255, 1]),
    array: [1, 'two', [3.5], { four: 4 }],
    table: { inner: { innermost: [true] } },
    int8: { '!': 'int8', value: -5 },
    uint8: { '!': 'uint8', value: 250 },
    int16: { '!': 'int16', value: -3000 },
    uint16: { '!': 'uint16', value: 60000 },
    int32: { '!': 'int32', value: -3000000 },
    uint32: { '!': 'uint32', value: 4000000000 },
    int64: { '!': 'int64', value: -3000000000 },
    float: { '!': 'float', value: 1.5 },
    double: { '!': 'double', value: 2.25 },
    time: { '!': 'timestamp', value: 1767225600 },
    decimal: { '!': 'decimal', value: { digits: 314, places: 2 } },
  };
  const properties = {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers, deliveryMode: 2, priority: 3,
    correlationId: 'c', replyTo: 'r', expiration: '60000', messageId: 'm',
    timestamp: 1767225600, type: 't', userId: 'guest', appId: 'a',
  };
  channel.sendToQueue(queue, Buffer.from('body'), properties);
  const got = (await channel.get(queue, { noAck: true })).properties;
  for (const [key, value] of Object.entries(properties)) {
    if (key !== 'headers') assert.deepEqual(got[key], value, key);
  }
  for (const [key, value] of Object.entries(headers)) {
    const typed = value && value['!'];
    // Those that JavaScript has no type for come back with their type.
    const expected = typed && !['timestamp', 'decimal'].includes(typed) ? value.value : value;
    assert.deepEqual(got.headers[key], expected, key);
  }
});

test('cancel', async () => {
  const queue = await newQueue();
  const got = [];
  const { consumerTag } = await channel.consume(queue, (message) => got.push(message.content.toString()), { noAck: true });
  channel.sendToQueue(queue, Buffer.from('before'));
  await waitFor(() => got.length === 1);
  await channel.cancel(consumerTag);
  channel.sendToQueue(queue, Buffer.from('after'));
  await waitFor(async () => (await count(queue)) === 1);
  assert.deepEqual(got, ['before']);
});

test('a deleted queue cancels its consumer', async () => {
  const queue = await newQueue();
  const cancelled = new Promise((resolve) => {
    channel.consume(queue, (message) => { if (message === null) resolve(); });
  });
  const other = await connection.createChannel();
  await other.deleteQueue(queue);
  await cancelled;
});

test('exclusive queues and consumers', async () => {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const stranger = await amqp.connect(URL);
  const locked = await stranger.createChannel();
  const told = once(locked, 'error');
  await assert.rejects(locked.checkQueue(queue), /RESOURCE_LOCKED/);
  assert.equal((await told)[0].code, 405);
  const shared = await newQueue();
  await channel.consume(shared, () => {}, { exclusive: true });
  const second = await stranger.createChannel();
  second.on('error', () => {});
  await assert.rejects(second.consume(shared, () => {}), /ACCESS_REFUSED/);
  await stranger.close();
});

test('errors close the channel alone', async () => {
  const failing = await connection.createChannel();
  const told = once(failing, 'error');
  await assert.rejects(failing.checkQueue('no such queue'), /NOT_FOUND - no queue 'no such queue' in vhost '\/'/);
  assert.equal((await told)[0].code, 404);
  assert.ok(await newQueue());
});

test('wrong passwords and vhosts are told', async () => {
  const wrong = URL.replace('guest:guest', 'guest:wrong');
  await assert.rejects(amqp.connect(wrong), /403.*ACCESS.REFUSED/i);
  // What amqplib makes of the 530 that comes in place of open-ok.
  await assert.rejects(amqp.connect(`${URL}/no%20such%20vhost`), /ConnectionClose/);
});
