# stoat_options: compiler settings that every target of ours links, PRIVATE or through a layer.
add_library(stoat_options INTERFACE)
target_include_directories(stoat_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(stoat_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside the standard library's inlined strings and variants, and Asio's coroutine frames.
  target_compile_options(stoat_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized
    -Wno-array-bounds -Wno-mismatched-new-delete -Wno-stringop-overflow -Wno-stringop-overread -Wno-free-nonheap-object)
endif()
if(STOAT_WARNINGS_AS_ERRORS)
  target_compile_options(stoat_options INTERFACE -Werror)
endif()

if(STOAT_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(STOAT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  # TSan does not model stand-alone fences.
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
elseif(NOT STOAT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "STOAT_SANITIZE must be empty, address or thread, not '${STOAT_SANITIZE}'")
endif()

find_program(STOAT_CCACHE ccache)
if(STOAT_CCACHE)
  # The sloppiness settings are what ccache asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${STOAT_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
