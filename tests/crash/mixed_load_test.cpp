// kill -9 while everything goes on at once: publishes, acks, requeues of every kind, purges, queues
// deleted and declared anew. A ledger knows what each party was told, and so what has to be there
// after the next start and what must never be seen again.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names

using Ids = std::set<std::uint64_t>;

constexpr int kQueues = 3;
constexpr int kPublishersPerQueue = 2;
constexpr int kConsumersPerQueue = 2;
// Every party that publishes has numbers of its own.
constexpr std::uint64_t kIdsPerParty = 1'000'000'000;

std::string queue_name(int index) {
  return "mixed." + std::to_string(index);
}

Properties persistent() {
  Properties properties;
  properties.delivery_mode = 2;
  return properties;
}

std::string body_of(std::uint64_t id) {
  return std::to_string(1'000'000'000'000 + id).substr(1);
}

// What was seen and said, over all rounds. Thread: any.
class Ledger {
 public:
  void received(std::uint64_t id, bool redelivered) {
    const std::lock_guard lock(mutex_);
    std::uint8_t& known = at(id);
    if ((known & kSeen) != 0 && !redelivered) unmarked_.insert(id);
    if ((known & kEnded) != 0) returned_.insert(id);
    known |= kSeen;
  }
  void confirmed(const std::vector<std::uint64_t>& ids) { mark(ids, kConfirmed); }
  // The broker may know of it or not.
  void acked(const std::vector<std::uint64_t>& ids) { mark(ids, kAcked); }
  // A later confirm of the same queue has come: they are settled for good.
  void ended(const std::vector<std::uint64_t>& ids) { mark(ids, kEnded); }

  // Confirmed, of nobody said to be acknowledged, and not among `left`.
  Ids lost(const Ids& left) const {
    Ids none;
    for_each([&](std::uint64_t id, std::uint8_t known) {
      if ((known & kConfirmed) != 0 && (known & kAcked) == 0 && !left.contains(id)) none.insert(id);
    });
    return none;
  }
  const Ids& unmarked() const { return unmarked_; }  // came again without the mark
  const Ids& returned() const { return returned_; }  // came though they were settled for good
  std::uint64_t confirms() const { return count(kConfirmed); }
  std::uint64_t ends() const { return count(kEnded); }

 private:
  static constexpr std::uint8_t kSeen = 1;
  static constexpr std::uint8_t kConfirmed = 2;
  static constexpr std::uint8_t kAcked = 4;
  static constexpr std::uint8_t kEnded = 8;

  std::uint8_t& at(std::uint64_t id) {
    auto& party = known_[id / kIdsPerParty];
    const std::uint64_t number = id % kIdsPerParty;
    if (party.size() <= number) party.resize(number + 1);
    return party[number];
  }
  void mark(const std::vector<std::uint64_t>& ids, std::uint8_t what) {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t id : ids) at(id) |= what;
  }
  template <class Fn>
  void for_each(Fn fn) const {
    for (const auto& [party, known] : known_) {
      for (std::uint64_t i = 0; i < known.size(); ++i) fn(party * kIdsPerParty + i, known[i]);
    }
  }
  std::uint64_t count(std::uint8_t what) const {
    std::uint64_t sum = 0;
    for_each([&](std::uint64_t, std::uint8_t known) { sum += (known & what) != 0; });
    return sum;
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::uint8_t>> known_;  // by party
  Ids unmarked_;
  Ids returned_;
};

// A consumer that acknowledges most, gives back some in every way there is, and publishes into its
// own queue: the confirm of that proves that the acks before it are settled.
class Consumer {
 public:
  Consumer(std::string queue, std::uint64_t first_id, Ledger& ledger)
      : queue_(std::move(queue)), next_id_(first_id), ledger_(ledger) {}

  void run_until_lost(std::uint16_t port) {
    open_.clear();
    highest_.clear();
    try {
      WireClient client(port, ConnectOptions{});
      client.open_channel(2);
      client.confirm_select(2);
      begin(client);
      for (std::uint64_t tag = 1;; ++tag) take_one(client, tag);
    } catch (const Unexpected& error) {
      // The broker is gone; anything else was said by it.
      const std::string text = error.what();
      if (text.find("the connection ended") == std::string::npos) ADD_FAILURE() << text;
    } catch (const std::exception&) {
      // Gone already when it was connected to.
    }
  }

 private:
  void begin(WireClient& client) {
    client.qos(1, 40);
    client.consume(1, queue_, "c");
  }

  void take_one(WireClient& client, std::uint64_t count) {
    const Delivery message = client.expect_delivery(1);
    const std::uint64_t id = ConfirmedPublisher::id_of(message.body);
    const std::uint64_t tag = message.method.delivery_tag;
    ledger_.received(id, message.method.redelivered);
    if (!message.method.redelivered) expect_in_order(id);
    if (id % 53 == 0 && !message.method.redelivered) return client.nack(1, tag, false, true);
    if (id % 59 == 0 && !message.method.redelivered) return client.reject(1, tag, true);
    open_.push_back(id);
    if (count % 701 == 0) {
      client.send(1, basic::Recover{true});
      drop_up_to<basic::RecoverOk>(client);
    } else if (count % 997 == 0) {
      reopen(client);
    } else if (open_.size() >= 20) {
      ledger_.acked(open_);
      client.ack(1, tag, true);
      publish_behind(client);
      ledger_.ended(open_);
      open_.clear();
    }
  }

  // What was delivered up to there has gone back to the queue.
  template <class Method>
  void drop_up_to(WireClient& client) {
    while (true) {
      const Frame frame = client.take(1, method_name(Method::kId));
      if (frame.kind == FrameDecoder::Kind::method &&
          peek_method_id(*frame.payload) == Method::kId) {
        break;
      }
    }
    open_.clear();
  }

  // Its unacknowledged messages go back with the channel.
  void reopen(WireClient& client) {
    client.send(1, channel::Close{200, "", 0, 0});
    drop_up_to<channel::CloseOk>(client);
    client.open_channel(1);
    begin(client);
  }

  void publish_behind(WireClient& client) {
    const std::uint64_t id = next_id_++;
    client.publish(2, "", queue_, body_of(id), persistent());
    if (client.expect_confirm(2).nack) throw std::logic_error("a nack from a healthy broker");
    ledger_.confirmed({id});
  }

  void expect_in_order(std::uint64_t id) {
    std::uint64_t& highest = highest_[id / kIdsPerParty];
    EXPECT_GT(id + 1, highest) << "out of order in " << queue_;
    highest = id + 1;
  }

  const std::string queue_;
  std::uint64_t next_id_;
  Ledger& ledger_;
  std::vector<std::uint64_t> open_;
  std::map<std::uint64_t, std::uint64_t> highest_;  // by publisher, on this connection
};

// Fills a queue with confirmed messages and empties it: by purging or by deleting and declaring it
// anew. Knows what must be in it and what must not.
class Emptier {
 public:
  enum class By { purging, deleting };

  Emptier(std::string queue, By by, std::uint64_t first_id)
      : queue_(std::move(queue)), by_(by), next_id_(first_id) {}

  void run_until_lost(std::uint16_t port) {
    try {
      WireClient client(port, ConnectOptions{});
      client.declare_queue(1, queue_, {}, true);
      client.confirm_select(1);
      confirmed_to_on_channel_ = 0;
      while (true) {
        fill(client);
        empty(client);
      }
    } catch (const Unexpected& error) {
      const std::string text = error.what();
      if (text.find("the connection ended") == std::string::npos) ADD_FAILURE() << text;
    } catch (const std::exception&) {
    }
  }

  // What a start has found in the queue; begins with an empty one again.
  void verify(const std::vector<std::uint64_t>& ids) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end())) << queue_;
    EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end()) == ids.end()) << "twice in " << queue_;
    const Ids found(ids.begin(), ids.end());
    for (const std::uint64_t id : found) {
      EXPECT_GE(id, gone_below_) << id << " is back in " << queue_;
      EXPECT_LT(id, next_id_) << "in " << queue_;
    }
    if (!emptying_) {
      for (const std::uint64_t id : there_) {
        EXPECT_TRUE(found.contains(id)) << id << " was confirmed and is not in " << queue_;
      }
    }
    there_.clear();
    gone_below_ = next_id_;
    emptying_ = false;
  }
  std::uint64_t emptied() const { return emptied_; }

 private:
  void fill(WireClient& client) {
    constexpr int kMessages = 30;
    for (int i = 0; i < kMessages; ++i) {
      client.publish(1, "", queue_, body_of(next_id_++), persistent());
    }
    std::size_t left = kMessages;
    while (left > 0) {
      const Confirm confirm = client.expect_confirm(1);
      const std::uint64_t newly = confirm.multiple ? confirm.tag - confirmed_to_on_channel_ : 1;
      confirmed_to_on_channel_ += newly;
      left -= newly;
    }
    for (std::uint64_t id = next_id_ - kMessages; id < next_id_; ++id) there_.insert(id);
    // A purge is settled with what is confirmed behind it, at the latest.
    gone_below_ = next_id_ - kMessages;
    emptying_ = false;
  }

  void empty(WireClient& client) {
    emptying_ = true;
    if (by_ == By::purging) {
      client.call<queue::PurgeOk>(1, queue::Purge{0, queue_, false});
      there_.clear();
    } else {
      client.delete_queue(1, queue_);
      gone_below_ = next_id_;
      there_.clear();
      EXPECT_EQ(client.declare_queue(1, queue_, {}, true).message_count, 0u) << queue_;
    }
    ++emptied_;
  }

  const std::string queue_;
  const By by_;
  std::uint64_t next_id_;
  std::uint64_t confirmed_to_on_channel_ = 0;
  Ids there_;                     // confirmed since it was empty
  std::uint64_t gone_below_ = 0;  // none below must be seen again
  bool emptying_ = false;
  std::uint64_t emptied_ = 0;
};

class MixedLoad : public testing::TestWithParam<const char*> {
 protected:
  MixedLoad() : broker_(options()) {}

  static BrokerProcess::Options options() {
    BrokerProcess::Options options;
    options.arguments = {"--workers", GetParam()};
    return options;
  }
  std::vector<std::uint64_t> take_ids(const std::string& queue) {
    WireClient client(broker_.port(), ConnectOptions{});
    client.declare_queue(1, queue, {}, true);
    const auto ids = ids_of(take_all(client, queue));
    client.close();
    return ids;
  }

  BrokerProcess broker_;
};

TEST_P(MixedLoad, WhatWasPromisedHolds) {
  {
    WireClient client(broker_.port(), ConnectOptions{});
    for (int i = 0; i < kQueues; ++i) client.declare_queue(1, queue_name(i), {}, true);
  }
  Ledger ledger;
  std::uint64_t party = 0;
  std::vector<ConfirmedPublisher> publishers;
  std::vector<Consumer> consumers;
  for (int i = 0; i < kQueues; ++i) {
    for (int j = 0; j < kPublishersPerQueue; ++j) {
      publishers.emplace_back(ConfirmedPublisher::Target{"", queue_name(i)},
                              party++ * kIdsPerParty);
    }
    for (int j = 0; j < kConsumersPerQueue; ++j) {
      consumers.emplace_back(queue_name(i), party++ * kIdsPerParty, ledger);
    }
  }
  Emptier purger("purged", Emptier::By::purging, party++ * kIdsPerParty);
  Emptier deleter("deleted", Emptier::By::deleting, party++ * kIdsPerParty);

  std::minstd_rand random(20260715);
  for (int round = 0; round < crash_rounds(4); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::uint16_t port = broker_.port();
    std::vector<std::thread> threads;
    for (auto& publisher : publishers) {
      threads.emplace_back([&publisher, port] {
        publisher.publish_until_lost(port, 1'000'000, [](auto id) { return 12 + id % 1200; });
      });
    }
    for (auto& consumer : consumers) {
      threads.emplace_back([&consumer, port] { consumer.run_until_lost(port); });
    }
    for (Emptier* emptier : {&purger, &deleter}) {
      threads.emplace_back([emptier, port] { emptier->run_until_lost(port); });
    }
    std::this_thread::sleep_for(milliseconds(150 + random() % 400));
    broker_.kill9();
    for (std::thread& thread : threads) thread.join();
    broker_.start();
    purger.verify(take_ids("purged"));
    deleter.verify(take_ids("deleted"));
    for (const char* q : {"purged", "deleted"}) {
      // So that what was just taken does not come back with the next kill.
      ConfirmedPublisher({"", q}, 999'999'999'999).publish(broker_.port(), 1);
      WireClient client(broker_.port(), ConnectOptions{});
      client.delete_queue(1, q);
    }
    if (HasFailure()) return;
  }

  Ids left;
  for (int i = 0; i < kQueues; ++i) {
    WireClient client(broker_.port(), ConnectOptions{});
    for (const Delivery& message : take_all(client, queue_name(i))) {
      const std::uint64_t id = ConfirmedPublisher::id_of(message.body);
      ledger.received(id, message.method.redelivered);
      EXPECT_TRUE(left.insert(id).second) << id << " is there twice";
    }
  }
  for (const auto& publisher : publishers) ledger.confirmed(publisher.confirmed());
  const Ids lost = ledger.lost(left);
  EXPECT_TRUE(lost.empty()) << lost.size() << " were confirmed, never acknowledged, and are gone: "
                            << *lost.begin() << " ...";
  EXPECT_TRUE(ledger.returned().empty())
      << ledger.returned().size() << " came back after their end: " << *ledger.returned().begin();
  EXPECT_TRUE(ledger.unmarked().empty())
      << ledger.unmarked().size() << " came again unmarked: " << *ledger.unmarked().begin();
  EXPECT_GT(ledger.confirms(), 0u);
  EXPECT_GT(ledger.ends(), 0u) << "the load was none";
  EXPECT_GT(purger.emptied() + deleter.emptied(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Workers, MixedLoad, testing::Values("1", "2"),
                         [](const auto& test) { return std::string("Of") + test.param; });

}  // namespace
}  // namespace stoat::test
