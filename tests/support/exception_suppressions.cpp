// An exception that crosses threads is counted inside libstdc++, which is not built for
// ThreadSanitizer: the count's atomics are missed, and the last owner's freeing is taken for a race
// with an earlier owner's reading. Only that freeing is left out.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
