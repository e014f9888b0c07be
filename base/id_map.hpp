#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>

namespace stoat {

// A table by one of the ids of base/ids.hpp.
template <class Id, class Value>
using IdMap = boost::unordered_flat_map<Id, Value, std::hash<Id>>;

}  // namespace stoat
