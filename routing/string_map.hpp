#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <string>
#include <string_view>

namespace stoat::routing {

struct StringHash {
  using is_transparent = void;
  using is_avalanching = void;  // libstdc++ hashes strings with Murmur
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

// A table keyed by names or words in which a string_view is looked up without making a string.
template <class Value>
using StringMap = boost::unordered_flat_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace stoat::routing
