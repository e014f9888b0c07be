#pragma once

#include <string_view>

namespace stoat::broker {

// Tells the service manager how far we are ("READY=1", "STOPPING=1"): one datagram to the socket
// that systemd names in NOTIFY_SOCKET, as sd_notify(3) describes it. Does nothing where there is
// none; a failure is not worth stopping for and is answered with false.
bool notify_service(std::string_view state);

}  // namespace stoat::broker
