#pragma once

#include <bit>
#include <concepts>
#include <cstring>

// Big-endian loads and stores at any alignment: AMQP's byte order, and the order in which RocksDB
// keys sort like their numbers.

namespace stoat {

template <std::unsigned_integral T>
constexpr T byteswap(T value) {
  if constexpr (sizeof(T) == 1)
    return value;
  else if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bswap16(value));
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(__builtin_bswap32(value));
  else
    return static_cast<T>(__builtin_bswap64(value));
}

template <std::unsigned_integral T>
T load_big(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::big ? value : byteswap(value);
}

template <std::unsigned_integral T>
void store_big(char* to, T value) {
  if constexpr (std::endian::native != std::endian::big) value = byteswap(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace stoat
