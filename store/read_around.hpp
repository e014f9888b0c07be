#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/iterator.h"

namespace stoat::store {

using OnEntry = std::function<void(const rocksdb::Slice& key, const rocksdb::Slice& value)>;

using MakeIterator = std::function<std::unique_ptr<rocksdb::Iterator>()>;

// Hands out all that can be read through iterators without bounds, from the first key to the last.
// RocksDB's iterators end at the first block that cannot be read; this looks for the next key
// behind it that can. Neighbouring keys are tried one by one, then in strides that double, and the
// first key that can be read is narrowed down from there; so where two bad blocks follow each other
// closely in a sparse range of keys, a good one between them may be passed over. `likely` names
// keys at which a dense range may begin; there it goes by small strides again.
//
// Answers the first error met; OK when everything could be read.
// Thread: one.
rocksdb::Status read_around(const MakeIterator& make, std::vector<std::string> likely,
                            const OnEntry& on_entry);

}  // namespace stoat::store
