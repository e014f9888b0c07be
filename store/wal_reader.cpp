#include "store/wal_reader.hpp"

#include <algorithm>

#include "store/crc32c.hpp"
#include "store/open.hpp"

namespace stoat::store {
namespace {

constexpr std::size_t kBlockBytes = 32 * 1024;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kRecycledHeaderBytes = 11;

constexpr int kWhole = 1;
constexpr int kFirst = 2;
constexpr int kLast = 4;
constexpr int kRecycled = 4;  // added to the type
constexpr int kMaxType = 8;

// Of a write batch: its sequence number (8) and count (4), then log data: a tag, a length of one
// byte, and the mark.
constexpr std::size_t kBatchHeaderBytes = 12;
constexpr char kLogDataTag = 3;
constexpr std::size_t kMarkOffset = kBatchHeaderBytes + 2;
constexpr std::size_t kBeginningBytes = kMarkOffset + kMarkSize;

std::uint32_t load_little32(const char* from) {
  return byteswap(load_big<std::uint32_t>(from));
}

// RocksDB masks checksums that it stores, so that one over data with checksums inside is no less
// good.
std::uint32_t mask(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

std::optional<GroupMark> mark_of(std::string_view batch) {
  if (batch.size() < kBeginningBytes || batch[kBatchHeaderBytes] != kLogDataTag ||
      batch[kBatchHeaderBytes + 1] != static_cast<char>(kMarkSize)) {
    return std::nullopt;
  }
  return decode_mark(batch.substr(kMarkOffset, kMarkSize));
}

WalReader::WalReader(rocksdb::Env& env, std::string path, Entries entries)
    : path_(std::move(path)), entries_(entries) {
  const auto status = env.NewSequentialFile(path_, &file_, rocksdb::EnvOptions());
  if (!status.ok()) throw StoreOpenError("cannot read " + path_ + ": " + status.ToString());
}

bool WalReader::load_block() {
  block_offset_ += block_.size();
  block_.resize(kBlockBytes);
  std::size_t have = 0;
  while (have < kBlockBytes) {
    rocksdb::Slice read;
    const auto status = file_->Read(kBlockBytes - have, &read, block_.data() + have);
    if (!status.ok()) throw StoreOpenError("cannot read " + path_ + ": " + status.ToString());
    if (read.empty()) break;
    if (read.data() != block_.data() + have) {
      std::copy_n(read.data(), read.size(), block_.data() + have);
    }
    have += read.size();
  }
  block_.resize(have);
  at_ = 0;
  return have > 0;
}

std::optional<WalReader::Fragment> WalReader::fragment_at(std::size_t at) const {
  const std::size_t left = block_.size() - at;
  if (left < kHeaderBytes) return std::nullopt;
  const char* header = block_.data() + at;
  int type = header[6];
  if (type < kWhole || type > kMaxType) return std::nullopt;
  const std::size_t length =
      load_big<std::uint8_t>(header + 4) + std::size_t{load_big<std::uint8_t>(header + 5)} * 256;
  const bool recycled = type > kRecycled;
  const std::size_t header_bytes = recycled ? kRecycledHeaderBytes : kHeaderBytes;
  if (header_bytes + length > left) return std::nullopt;
  // From the type on: the payload and, in a recycled file, the log number before it.
  const std::string_view summed(header + 6, header_bytes - 6 + length);
  if (load_little32(header) != mask(crc32c(0, summed))) return std::nullopt;
  return Fragment{
      recycled ? type - kRecycled : type, {header + header_bytes, length}, header_bytes + length};
}

std::optional<WalReader::Item> WalReader::take(const Fragment& fragment, std::uint64_t offset) {
  if (fragment.type == kWhole || fragment.type == kFirst) {
    const bool cut_short = open_entry_.has_value();
    const std::uint64_t cut_offset = cut_short ? open_entry_->offset : 0;
    open_entry_ = Entry{offset, {}};
    // The entry before never ended: a bad spot, and this fragment is looked at again.
    if (cut_short) {
      open_entry_.reset();
      return Item{cut_offset, true, {}, {}};
    }
  }
  at_ += fragment.size;
  if (!open_entry_) return std::nullopt;  // the end of an entry whose beginning was bad
  std::string& beginning = open_entry_->beginning;
  const std::size_t wanted =
      entries_ == Entries::whole ? fragment.payload.size() : kBeginningBytes - beginning.size();
  beginning.append(fragment.payload.substr(0, wanted));
  if (fragment.type != kWhole && fragment.type != kLast) return std::nullopt;
  Item item{open_entry_->offset, false, mark_of(beginning), {}};
  if (entries_ == Entries::whole) item.batch = std::move(beginning);
  open_entry_.reset();
  return item;
}

std::optional<WalReader::Item> WalReader::next() {
  while (true) {
    if (at_ + kHeaderBytes > block_.size() && !load_block()) {
      if (!open_entry_) return std::nullopt;
      const std::uint64_t offset = open_entry_->offset;  // the file ends inside an entry
      open_entry_.reset();
      return Item{offset, true, {}, {}};
    }
    const std::uint64_t offset = block_offset_ + at_;
    if (const auto fragment = fragment_at(at_)) {
      searching_ = false;
      if (auto item = take(*fragment, offset)) return item;
      continue;
    }
    ++at_;
    if (searching_) continue;
    searching_ = true;
    const std::uint64_t bad_offset = open_entry_ ? open_entry_->offset : offset;
    open_entry_.reset();
    return Item{bad_offset, true, {}, {}};
  }
}

}  // namespace stoat::store
