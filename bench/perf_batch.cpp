#include "bench/perf_batch.hpp"

#include <algorithm>

#include "bench/perf_connection.hpp"
#include "wire/basic.hpp"
#include "wire/codec.hpp"

namespace stoat::bench {
namespace {

constexpr std::size_t kBatchBytes = 64 * 1024;
constexpr std::size_t kMaxBatchMessages = 512;
constexpr std::size_t kAllBatchesBytes = 64 << 20;

// Letters, so that what compresses does not compress to nothing.
std::string make_body(std::size_t size_bytes) {
  std::string body(size_bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : body) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>('a' + (state >> 16) % 26);
  }
  return body;
}

}  // namespace

PerfBatch::PerfBatch(const PerfOptions& options, const std::vector<PerfDestination>& destinations,
                     std::uint32_t frame_max_bytes)
    : stamped_(options.size_bytes >= PerfStamp::kBytes) {
  const std::string body = make_body(options.size_bytes);
  const std::size_t bytes =
      std::min(kBatchBytes, kAllBatchesBytes / static_cast<std::size_t>(options.producers));
  std::size_t count = std::min(bytes / (options.size_bytes + 64) + 1, kMaxBatchMessages);
  if (options.confirm > 0) count = std::min(count, static_cast<std::size_t>(options.confirm));
  // From any destination on there are `count` messages.
  count += destinations.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const PerfDestination& destination = destinations[i % destinations.size()];
    Slot slot{};
    slot.begin = frames_.size();
    wire::basic::Publish publish;
    publish.exchange = destination.exchange;
    publish.routing_key = destination.routing_key;
    publish.mandatory = options.mandatory;
    wire::append_method(frames_, PerfConnection::kChannel, publish);
    wire::append_content_header(frames_, PerfConnection::kChannel, body.size(),
                                destination.properties);
    slot.stamp = frames_.size() + wire::kFrameHeaderBytes;
    wire::append_body(frames_, PerfConnection::kChannel, body, frame_max_bytes);
    slot.end = frames_.size();
    slots_.push_back(slot);
  }
}

void PerfBatch::start(std::size_t destination) {
  next_ = destination;
  begin_ = end_ = slots_[next_].begin;
}

}  // namespace stoat::bench
