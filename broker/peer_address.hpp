#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace stoat::broker {

// "127.0.0.1:5672" or "[::1]:5672" for the log; "unknown peer" when it has gone already.
std::string peer_text(const boost::asio::ip::tcp::socket& socket);

// Whether the peer is on this machine; what guest may log in from.
bool is_loopback(const boost::asio::ip::tcp::socket& socket);

}  // namespace stoat::broker
