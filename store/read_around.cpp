#include "store/read_around.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stoat::store {
namespace {

// A block of small messages holds about that many.
constexpr int kNeighboursTried = 1024;
constexpr std::size_t kPlaces = 17;  // of a message's key

// A key as a number, its first byte the most significant.
class Place {
 public:
  explicit Place(std::string key) : bytes_(std::move(key)) {
    bytes_.resize(std::max(bytes_.size(), kPlaces), '\0');
  }

  const std::string& key() const { return bytes_; }
  // Both as wide as the wider one.
  void widen_to(Place& other) {
    const std::size_t places = std::max(bytes_.size(), other.bytes_.size());
    bytes_.resize(places, '\0');
    other.bytes_.resize(places, '\0');
  }
  friend bool operator==(const Place&, const Place&) = default;

  // False, and the highest place there is, when there is none so far on.
  bool add(const Place& stride) {
    const bool fits = !add_to(stride);
    if (!fits) bytes_.assign(bytes_.size(), '\xff');
    return fits;
  }
  // Halfway between the two: `low` itself where they are neighbours.
  static Place between(const Place& low, const Place& high) {
    Place middle = low;
    int carry = middle.add_to(high);
    for (char& each : middle.bytes_) {
      const int value = static_cast<unsigned char>(each) + (carry << 8);
      each = static_cast<char>(value >> 1);
      carry = value & 1;
    }
    return middle;
  }
  static Place one(std::size_t places) {
    std::string bytes(places, '\0');
    bytes.back() = 1;
    return Place(std::move(bytes));
  }

 private:
  // Answers what is carried out of the first byte.
  int add_to(const Place& other) {
    int carry = 0;
    for (std::size_t i = bytes_.size(); i-- > 0;) {
      carry += static_cast<unsigned char>(bytes_[i]) + static_cast<unsigned char>(other.bytes_[i]);
      bytes_[i] = static_cast<char>(carry);
      carry >>= 8;
    }
    return carry;
  }

  std::string bytes_;
};

// An iterator at the first key at or above the place; null where that cannot be read.
using Made = std::unique_ptr<rocksdb::Iterator>;
Made seek(const MakeIterator& make, const Place& place) {
  // A new one each time: one that has failed may take a block for the one that it failed at.
  Made at = make();
  at->Seek(place.key());
  return at->status().ok() ? std::move(at) : nullptr;
}

// At the first readable key above `last`; null when there is none any more.
Made skip_unreadable(const MakeIterator& make, const std::string& last,
                     const std::vector<std::string>& likely) {
  Place unreadable(last);
  Place readable = unreadable;
  Place stride = Place::one(readable.key().size());
  bool more = true;
  for (int tried = 0;; ++tried) {
    if (!more) return nullptr;
    more = readable.add(stride);
    const auto next = std::upper_bound(likely.begin(), likely.end(), unreadable.key());
    if (next != likely.end() && *next < readable.key()) {
      // Not past a place where keys may begin anew: from there on by small strides again.
      readable = Place(*next);
      stride = Place::one(readable.key().size());
      tried = 0;
      more = true;
    }
    if (seek(make, readable)) break;
    unreadable = readable;
    if (tried >= kNeighboursTried) stride.add(stride);
  }
  unreadable.widen_to(readable);
  for (Place middle = Place::between(unreadable, readable); middle != unreadable;
       middle = Place::between(unreadable, readable)) {
    (seek(make, middle) ? readable : unreadable) = middle;
  }
  return seek(make, readable);
}

}  // namespace

rocksdb::Status read_around(const MakeIterator& make, std::vector<std::string> likely,
                            const OnEntry& on_entry) {
  std::sort(likely.begin(), likely.end());

  rocksdb::Status first;
  std::string last;
  Made at = make();
  at->SeekToFirst();
  while (true) {
    for (; at->Valid(); at->Next()) {
      on_entry(at->key(), at->value());
      last.assign(at->key().data(), at->key().size());
    }
    if (at->status().ok()) return first;
    if (first.ok()) first = at->status();
    at = skip_unreadable(make, last, likely);
    if (!at) return first;
  }
}

}  // namespace stoat::store
