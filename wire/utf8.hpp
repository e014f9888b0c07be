#pragma once

#include <cstddef>
#include <string_view>

namespace stoat::wire {

// Whether the bytes are UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing above
// U+10FFFF. Short strings in methods must be (specification 4.2.5.3); names are checked with this.
bool valid_utf8(std::string_view text);

// How many bytes the well-formed character at the front of text takes; 0 when there is none.
std::size_t utf8_character_size(std::string_view text);

}  // namespace stoat::wire
