#include "broker/service_notify.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace stoat::broker {
namespace {

// Listens as systemd does; a name that begins with '@' is in the abstract namespace.
class Manager {
 public:
  explicit Manager(std::string name) : name_(std::move(name)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') address.sun_path[0] = '\0';
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~Manager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(fd_);
    if (name_[0] != '@') ::unlink(name_.c_str());
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  std::string received() {
    char buffer[256];
    const ssize_t size = ::recv(fd_, buffer, sizeof buffer, 0);
    return size < 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(size));
  }

 private:
  std::string name_;
  int fd_ = -1;
};

TEST(ServiceNotify, ReachesAPathAndAnAbstractName) {
  const std::string pid = std::to_string(::getpid());
  for (const std::string& name :
       {testing::TempDir() + "stoat_notify_" + pid, "@stoat_notify_" + pid}) {
    Manager manager(name);
    EXPECT_TRUE(notify_service("READY=1")) << name;
    EXPECT_EQ(manager.received(), "READY=1") << name;
    EXPECT_TRUE(notify_service("STOPPING=1")) << name;
    EXPECT_EQ(manager.received(), "STOPPING=1") << name;
  }
}

TEST(ServiceNotify, WithoutAManagerThereIsNothingToDo) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(notify_service("READY=1"));
  ::setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
  EXPECT_FALSE(notify_service("READY=1"));
  ::setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_FALSE(notify_service("READY=1"));
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace stoat::broker
