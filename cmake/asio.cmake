# stoat_asio and stoat_beast: the parts of Asio and Beast that need not be headers, compiled once.
add_library(stoat_asio STATIC cmake/asio.cpp)
target_compile_definitions(stoat_asio PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_NO_TS_EXECUTORS)
target_link_libraries(stoat_asio PUBLIC Boost::headers Threads::Threads)

add_library(stoat_beast STATIC cmake/beast.cpp)
target_compile_definitions(stoat_beast PUBLIC BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(stoat_beast PUBLIC stoat_asio)
if(STOAT_SANITIZE)
  # Beast's templates cost minutes and gigabytes when optimised under a sanitizer.
  target_compile_options(stoat_beast PRIVATE -O0)
endif()
