// The payload of a method frame. What decodes encodes to a frame that decodes to the same, and
// nothing that is announced is believed.

#include <cstdint>
#include <string>

#include "base/assert.hpp"
#include "tests/wire/all_methods.hpp"
#include "wire/codec.hpp"
#include "wire/utf8.hpp"

namespace {

using namespace stoat;
using namespace stoat::wire;

template <class M>
std::string payload_of(const M& method) {
  std::string frame;
  append_method(frame, ChannelNumber(1), method);
  return frame.substr(kFrameHeaderBytes, frame.size() - kFrameOverheadBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view payload(reinterpret_cast<const char*>(data), size);
  test::visit_method(payload, [&]<class M>(const M& method) {
    const std::string once = payload_of(method);
    // Bits that mean nothing and bytes at the end may differ from what came; nothing grows.
    STOAT_ASSERT(once.size() <= payload.size(), once.size(), payload.size());
    const auto again = decode_method<M>(once);
    STOAT_ASSERT(again.has_value());
    STOAT_ASSERT(payload_of(*again) == once);
    (void)valid_utf8(once);
  });
  return 0;
}
