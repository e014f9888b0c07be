#include "broker/service_notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace stoat::broker {

bool notify_service(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return true;

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t path_bytes = std::strlen(path);
  if (path_bytes >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path, path_bytes);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace

  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // An abstract name is as long as said; a path may come without its terminator.
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_bytes);
  const ssize_t sent = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), address_bytes);
  ::close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace stoat::broker
