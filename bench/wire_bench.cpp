// What the codec costs per message: a publish taken apart, a delivery put together. Buffers are as
// a connection has them: one read of many frames, one output string that is used again.

#include <benchmark/benchmark.h>

#include <string>

#include "wire/basic.hpp"
#include "wire/codec.hpp"
#include "wire/properties.hpp"

namespace stoat::wire {
namespace {

constexpr std::uint32_t kFrameMaxBytes = 131072;
constexpr int kMessagesPerRead = 60;

// Strings whose lengths the compiler cannot know, as they come from a queue and a message.
struct Names {
  std::string consumer_tag = "ctag1.0123456789";
  std::string exchange = "orders";
  std::string routing_key = "eu.west.order.created";
  Names() { benchmark::DoNotOptimize(this); }
  basic::Deliver deliver() const { return {consumer_tag, 0, false, exchange, routing_key}; }
};

Properties usual_properties(bool with_headers) {
  Properties properties;
  properties.content_type = "application/json";
  properties.delivery_mode = 2;
  if (with_headers) {
    properties.headers = Table{{"trace", "0af7651916cd43dd8448eb211c80319c"},
                               {"attempt", 3},
                               {"sampled", true},
                               {"route", Array{FieldValue("eu"), FieldValue("west")}}};
  }
  return properties;
}

std::string publishes(std::size_t body_bytes, bool with_headers) {
  basic::Publish publish;
  publish.exchange = "orders";
  publish.routing_key = "eu.west.order.created";
  const std::string properties = usual_properties(with_headers).encode();
  const std::string body(body_bytes, 'x');
  std::string bytes;
  for (int i = 0; i < kMessagesPerRead; ++i) {
    append_method(bytes, ChannelNumber(1), publish);
    append_content_header(bytes, ChannelNumber(1), body.size(), properties);
    append_body(bytes, ChannelNumber(1), body, kFrameMaxBytes);
  }
  return bytes;
}

void decode_publishes(benchmark::State& state) {
  const std::string bytes = publishes(static_cast<std::size_t>(state.range(0)), state.range(1));
  FrameDecoder decoder(kFrameMaxBytes);
  std::size_t body_bytes = 0;
  for (auto _ : state) {
    std::string_view input = bytes;
    for (auto e = decoder.next(input); e.kind != FrameDecoder::Kind::need_more;
         e = decoder.next(input)) {
      if (e.kind == FrameDecoder::Kind::method) {
        benchmark::DoNotOptimize(decode_method<basic::Publish>(e.payload));
      } else if (e.kind == FrameDecoder::Kind::header) {
        const PropertiesView properties(ContentHeader::decode(e.payload)->properties);
        benchmark::DoNotOptimize(properties.persistent());
      } else {
        body_bytes += e.payload.size();
      }
    }
  }
  benchmark::DoNotOptimize(body_bytes);
  state.SetItemsProcessed(state.iterations() * kMessagesPerRead);
}
BENCHMARK(decode_publishes)
    ->ArgNames({"body", "headers"})
    ->Args({1024, 0})
    ->Args({1024, 1})
    ->Args({100, 0});

void encode_deliver(benchmark::State& state) {
  const Names names;
  std::string out;
  basic::Deliver deliver = names.deliver();
  for (auto _ : state) {
    out.clear();
    for (int i = 0; i < kMessagesPerRead; ++i) {
      ++deliver.delivery_tag;
      append_method(out, ChannelNumber(1), deliver);
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kMessagesPerRead);
}
BENCHMARK(encode_deliver);

void encode_delivery(benchmark::State& state) {
  const std::string properties = usual_properties(false).encode();
  const std::string body(static_cast<std::size_t>(state.range(0)), 'x');
  const Names names;
  std::string out;
  basic::Deliver deliver = names.deliver();
  for (auto _ : state) {
    out.clear();
    for (int i = 0; i < kMessagesPerRead; ++i) {
      ++deliver.delivery_tag;
      append_method(out, ChannelNumber(1), deliver);
      append_content_header(out, ChannelNumber(1), body.size(), properties);
      append_body(out, ChannelNumber(1), body, kFrameMaxBytes);
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kMessagesPerRead);
}
BENCHMARK(encode_delivery)->ArgName("body")->Arg(1024)->Arg(100);

}  // namespace
}  // namespace stoat::wire

BENCHMARK_MAIN();
