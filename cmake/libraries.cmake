# The libraries that stoatd stands on. They are linked into it as archives, so that the one binary
# is all there is to install; the sanitizers want them as shared libraries, whose code they then
# leave alone as a whole.
if(STOAT_SANITIZE)
  set(STOAT_STATIC_LIBRARIES OFF)
else()
  option(STOAT_STATIC_LIBRARIES "Link libraries into the programs, but for the C library" ON)
endif()
set(OPENSSL_USE_STATIC_LIBS ${STOAT_STATIC_LIBRARIES})
set(Boost_USE_STATIC_LIBS ${STOAT_STATIC_LIBRARIES})
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(RocksDB 7 REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)

add_library(stoat_rocksdb INTERFACE)
add_library(stoat_spdlog INTERFACE)
add_library(stoat_toml INTERFACE)
if(STOAT_STATIC_LIBRARIES)
  # RocksDB's own target for its archive names the compressors as shared libraries.
  target_link_libraries(stoat_rocksdb INTERFACE $<TARGET_FILE:RocksDB::rocksdb>)
  foreach(name snappy z bz2 lz4 zstd gflags)
    find_library(STOAT_LIB_${name} NAMES lib${name}.a REQUIRED)
    target_link_libraries(stoat_rocksdb INTERFACE ${STOAT_LIB_${name}})
  endforeach()
  target_link_libraries(stoat_rocksdb INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
  # rocksdb::crc32c::Extend, see store/rocksdb_checksum.cpp.
  target_link_options(stoat_rocksdb INTERFACE
    -Wl,--wrap=_ZN7rocksdb6crc32c6ExtendEjPKcm
    -Wl,--undefined=__wrap__ZN7rocksdb6crc32c6ExtendEjPKcm)
  # Debian has no archives of these; one file of ours includes each.
  target_compile_definitions(stoat_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
  target_compile_definitions(stoat_toml INTERFACE TOML_HEADER_ONLY=1)
  add_link_options(-static-libstdc++ -static-libgcc)
else()
  target_link_libraries(stoat_rocksdb INTERFACE RocksDB::rocksdb-shared)
  target_link_libraries(stoat_spdlog INTERFACE spdlog::spdlog)
  target_link_libraries(stoat_toml INTERFACE tomlplusplus::tomlplusplus)
endif()
