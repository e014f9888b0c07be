// Debian's RocksDB is not built for ThreadSanitizer, which so misses the atomics it synchronises by
// and takes what they guard for races. Only what happens inside of it is left out.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:librocksdb.so\n";
}
