#include "broker/admin/session.hpp"

namespace stoat::broker::admin {

void Session::limit_time(std::chrono::milliseconds limit) {
  deadline_.expires_after(limit);
  time_limit_ = deadline_.expiry();
  deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (error) return;
    if (const auto session = weak.lock()) session->close();
  });
}

void Session::lift_time_limit() {
  deadline_.cancel();
  time_limit_.reset();
}

void Session::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Session::stop() {
  limit_time(kCloseTimeout);
  if (goodbye_) {
    goodbye_();
  } else {
    close();
  }
}

}  // namespace stoat::broker::admin
