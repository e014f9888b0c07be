#include "tests/wire/allocation_probe.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace stoat::wire::test {
namespace {

thread_local bool g_probing = false;
thread_local std::size_t g_largest_bytes = 0;
thread_local std::size_t g_total_bytes = 0;
thread_local long g_live_bytes = 0;

void* allocate_or_null(std::size_t size) {
  if (g_probing) {
    g_largest_bytes = std::max(g_largest_bytes, size);
    g_total_bytes += size;
  }
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block != nullptr) g_live_bytes += static_cast<long>(malloc_usable_size(block));
  return block;
}

void* allocate(std::size_t size) {
  void* block = allocate_or_null(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void release(void* block) {
  if (block == nullptr) return;
  g_live_bytes -= static_cast<long>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

AllocationProbe::AllocationProbe() {
  g_largest_bytes = 0;
  g_total_bytes = 0;
  g_live_bytes = 0;
  g_probing = true;
}

AllocationProbe::~AllocationProbe() {
  g_probing = false;
}

std::size_t AllocationProbe::largest_bytes() const {
  return g_largest_bytes;
}

std::size_t AllocationProbe::total_bytes() const {
  return g_total_bytes;
}

long AllocationProbe::live_bytes() const {
  return g_live_bytes;
}

}  // namespace stoat::wire::test

void* operator new(std::size_t size) {
  return stoat::wire::test::allocate(size);
}
void* operator new[](std::size_t size) {
  return stoat::wire::test::allocate(size);
}
// The non-throwing forms too: a sanitizer's own would not pair with the delete below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return stoat::wire::test::allocate_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return stoat::wire::test::allocate_or_null(size);
}
void operator delete(void* block) noexcept {
  stoat::wire::test::release(block);
}
void operator delete[](void* block) noexcept {
  stoat::wire::test::release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  stoat::wire::test::release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  stoat::wire::test::release(block);
}
