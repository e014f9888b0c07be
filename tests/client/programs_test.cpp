#include <gtest/gtest.h>
#include <cstdio>
#include <string>

#include "tests/support/program.hpp"
#include "tests/support/test_broker.hpp"

// The example pairs and stoat-perf as a user starts them, against a broker in this process.

namespace {

using stoat::test::Program;

std::string in_bin(const std::string& command_line) {
  return STOAT_BIN_DIR "/" + command_line;
}

class Programs : public testing::Test {
 protected:
  std::string uri() const {
    return "amqp://guest:guest@127.0.0.1:" + std::to_string(broker_.port());
  }

  // NAME_consumer, then NAME_producer once it waits, each with this many messages.
  void run_pair(const std::string& name, int count) {
    const std::string arguments = ' ' + uri() + ' ' + std::to_string(count);
    Program consumer(in_bin(name + "_consumer" + arguments));
    ASSERT_TRUE(consumer.read_until("waiting for")) << consumer.output();
    Program producer(in_bin(name + "_producer" + arguments));
    EXPECT_EQ(producer.wait(), 0) << producer.output();
    EXPECT_EQ(consumer.wait(), 0) << consumer.output();
    producer_output_ = producer.output();
    consumer_output_ = consumer.output();
    EXPECT_EQ(producer.count(": acked"), count) << producer.output();
  }

  stoat::test::TestBroker broker_;
  std::string producer_output_;
  std::string consumer_output_;
};

TEST_F(Programs, TopicPairRoutesConfirmsAndAcks) {
  run_pair("topic", 10);
  for (int order = 1; order <= 10; ++order)
    EXPECT_NE(consumer_output_.find("order " + std::to_string(order) + " as orders."),
              std::string::npos)
        << consumer_output_;
  EXPECT_NE(consumer_output_.find("received 10 of 10"), std::string::npos) << consumer_output_;
}

TEST_F(Programs, WorkPairDoesEveryTask) {
  run_pair("work", 4);
  for (const char* task : {"task 1 .", "task 2 ..", "task 3 ...", "task 4 ....", "4 tasks done"})
    EXPECT_NE(consumer_output_.find(task), std::string::npos) << consumer_output_;
}

TEST_F(Programs, ExamplesSayWhatIsWrong) {
  Program no_uri(in_bin("topic_producer"));
  EXPECT_EQ(no_uri.wait(), 2);
  EXPECT_EQ(no_uri.count("usage:"), 1);
  Program bad_uri(in_bin("topic_consumer amqp://host:port"));
  EXPECT_EQ(bad_uri.wait(), 1);
  EXPECT_EQ(bad_uri.count("bad amqp URI"), 1);
}

// Tiny, so that it does not rot.
TEST_F(Programs, PerfCountsWhatItSendsAndReceives) {
  for (const char* arguments : {" -z 0.3 -x 2 -y 2 -q 2 -r 500",
                                " -z 0.3 -c 0 -a 0 -s 100 --transient", " -z 0.3 -c 1 -p 1 -a 1"}) {
    Program perf(in_bin("stoat-perf " + uri() + arguments));
    ASSERT_EQ(perf.wait(), 0) << perf.output();
    unsigned long long sent = 0, received = 0, refused = 1;
    const auto last_line = perf.output().rfind('\n', perf.output().size() - 2) + 1;
    ASSERT_EQ(std::sscanf(perf.output().c_str() + last_line,
                          "%llu sent, %llu received, %llu refused", &sent, &received, &refused),
              3)
        << perf.output();
    EXPECT_GT(sent, 0u);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(refused, 0u);
  }
}

}  // namespace
