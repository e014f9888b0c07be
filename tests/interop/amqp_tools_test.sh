#!/usr/bin/env bash
# Debian's amqp-tools against the broker at AMQP_URL, amqp://guest:guest@127.0.0.1:5672 unless set.
set -euo pipefail

url="${AMQP_URL:-amqp://guest:guest@127.0.0.1:5672}"
queue="amqp-tools.$$"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

expect() {  # expect WHAT EXPECTED GOT
  [[ "$2" == "$3" ]] || fail "$1: expected '$2', got '$3'"
  echo "ok: $1"
}

expect "declare answers the name" "$queue" "$(amqp-declare-queue --url="$url" -d -q "$queue")"

for word in one two three; do
  amqp-publish --url="$url" -r "$queue" -p -C text/plain -b "$word"
done
expect "get takes the first" one "$(amqp-get --url="$url" -q "$queue")"
expect "get takes the next" two "$(amqp-get --url="$url" -q "$queue")"

amqp-publish --url="$url" -r "$queue" -p -b four
got="$(amqp-consume --url="$url" -q "$queue" -c 2 -p 1 -- sh -c 'cat; echo')"
expect "consume acknowledges two and ends" $'three\nfour' "$got"
status=0
amqp-get --url="$url" -q "$queue" > "$folder/empty" || status=$?
expect "get of an empty queue says so by its status" 2 "$status"

# A body over many frames, from standard input, byte for byte.
head -c 5242880 /dev/urandom > "$folder/sent"
amqp-publish --url="$url" -r "$queue" < "$folder/sent"
amqp-get --url="$url" -q "$queue" > "$folder/got"
cmp "$folder/sent" "$folder/got" || fail "a body of 5 MiB changed"
echo "ok: a body of 5 MiB"

# Many lines as many messages.
seq 1 200 | amqp-publish --url="$url" -r "$queue" -l
got="$(amqp-consume --url="$url" -q "$queue" -c 200 -A -- sh -c 'cat' | wc -l)"
expect "two hundred lines are two hundred messages" 200 "$got"

# A consumer with a queue of its own, bound to an exchange.
timeout 30 amqp-consume --url="$url" -e amq.topic -r "tools.$$.*" -x -c 1 -- sh -c cat \
  > "$folder/topic" &
consumer=$!
for _ in $(seq 1 300); do
  kill -0 "$consumer" 2> /dev/null || break  # it has got one and is gone
  amqp-publish --url="$url" -e amq.topic -r "tools.$$.x" -b routed
  sleep 0.1
done
wait "$consumer" || fail "the consumer of an exclusive queue ended with $?"
expect "routed through a topic exchange" routed "$(cat "$folder/topic")"

amqp-publish --url="$url" -r "$queue" -b left
expect "delete tells how many were left" 1 "$(amqp-delete-queue --url="$url" -q "$queue")"
status=0
amqp-get --url="$url" -q "$queue" > /dev/null 2> "$folder/error" || status=$?
[[ "$status" != 0 ]] || fail "get from a deleted queue succeeded"
grep -q "NOT_FOUND - no queue '$queue' in vhost '/'" "$folder/error" || fail "$(cat "$folder/error")"
echo "ok: a missing queue is told"
