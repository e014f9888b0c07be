#include "broker/whole_file.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace stoat::broker {

namespace {

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(), file.string());
}

}  // namespace

std::string read_whole_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file);
  std::string content;
  std::array<char, 16 * 1024> piece;
  while (in) {
    in.read(piece.data(), piece.size());
    content.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) fail(file);  // a folder, for one
  return content;
}

}  // namespace stoat::broker
