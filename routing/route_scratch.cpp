#include "routing/route_scratch.hpp"

#include "routing/routing_table.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

namespace stoat::routing {

void RouteScratch::begin(const Routable& message, std::span<const std::string_view> extra_keys,
                         std::size_t targets) {
  keys_.assign(1, message.routing_key);
  keys_.insert(keys_.end(), extra_keys.begin(), extra_keys.end());
  properties_ = message.properties;
  headers_parsed_ = false;
  reached_.clear(targets);
  matches_ = 0;
  queues_.clear();
  exchanges_.clear();
}

const TableIndex& RouteScratch::headers() {
  if (headers_parsed_) return header_index_;
  headers_parsed_ = true;
  header_index_.clear();
  if (properties_ == nullptr || !properties_->has_headers()) return header_index_;
  header_bytes_.clear();
  wire::Writer(header_bytes_)
      .long_string(properties_->raw_headers());  // a table's form on the wire
  headers_ = wire::Reader(header_bytes_).table();
  header_index_.assign(headers_);
  return header_index_;
}

const Exchange* RouteScratch::next_exchange() {
  if (exchanges_.empty()) return nullptr;
  const Exchange* exchange = exchanges_.back();
  exchanges_.pop_back();
  return exchange;
}

}  // namespace stoat::routing
