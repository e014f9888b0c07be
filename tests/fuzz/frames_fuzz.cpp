// A peer's byte stream. However it is cut, the decoder says the same; what it hands out is no more
// than what came in, and what it keeps is no more than that either.
//
// Input: frame_max selector, seed of the cuts, then the stream.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "wire/frame.hpp"

namespace {

using namespace stoat;
using namespace stoat::wire;
using Kind = FrameDecoder::Kind;

// Everything that does not depend on the cuts. Bodies are compared by their bytes, because a frame
// with a bad end mark has given out some of them or none.
struct Outcome {
  std::vector<std::string> frames;
  std::string body_bytes;
  std::string_view error;
};

void take(FrameDecoder& decoder, std::string_view piece, Outcome& outcome) {
  const std::vector<char> exact(piece.begin(), piece.end());
  std::string_view input(exact.data(), exact.size());
  while (outcome.error.empty()) {
    const std::size_t before = input.size();
    const auto event = decoder.next(input);
    STOAT_ASSERT(input.size() <= before, input.size(), before);
    if (event.kind == Kind::need_more) {
      STOAT_ASSERT(input.empty(), input.size());
      return;
    }
    if (event.kind == Kind::error) {
      outcome.error = event.error_text;
      STOAT_ASSERT(!outcome.error.empty());
      std::string_view more = kHeartbeatFrame;
      STOAT_ASSERT(decoder.next(more).kind == Kind::error);
    } else if (event.kind == Kind::body) {
      outcome.body_bytes += event.payload;
    } else {
      outcome.frames.push_back(std::to_string(static_cast<int>(event.kind)) + ' ' +
                               std::to_string(event.channel.value) + ' ' +
                               std::string(event.payload));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr std::uint32_t kFrameMaxBytes[] = {16, 64, 4096, 131072};
  const std::uint32_t frame_max = kFrameMaxBytes[data[0] % std::size(kFrameMaxBytes)];
  std::minstd_rand random(data[1] + 1u);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);

  Outcome whole;
  FrameDecoder at_once(frame_max);
  take(at_once, stream, whole);
  STOAT_ASSERT(whole.body_bytes.size() <= stream.size());

  Outcome cut;
  FrameDecoder in_pieces(frame_max);
  for (std::string_view left = stream; !left.empty() && cut.error.empty();) {
    const std::string_view piece = left.substr(0, 1 + random() % (1u << random() % 8));
    take(in_pieces, piece, cut);
    STOAT_ASSERT(
        in_pieces.buffered_bytes() <= stream.size() && in_pieces.buffered_bytes() <= frame_max,
        in_pieces.buffered_bytes());
    left.remove_prefix(piece.size());
  }
  STOAT_ASSERT(whole.frames == cut.frames, whole.frames.size(), cut.frames.size());
  STOAT_ASSERT(whole.error == cut.error, whole.error, cut.error);
  STOAT_ASSERT(cut.body_bytes.starts_with(whole.body_bytes));
  STOAT_ASSERT(!whole.error.empty() || cut.body_bytes == whole.body_bytes);
  return 0;
}
