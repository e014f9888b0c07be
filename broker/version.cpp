#include "broker/version.hpp"

namespace stoat::broker {

std::string_view version() {
  return STOAT_VERSION;
}

}  // namespace stoat::broker
