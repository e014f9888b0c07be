// stoatd: reads the configuration, runs a Server until SIGTERM or SIGINT.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>

#include "broker/config.hpp"
#include "broker/definitions.hpp"
#include "broker/folder_inspection.hpp"
#include "broker/log.hpp"
#include "broker/server.hpp"
#include "broker/service_notify.hpp"
#include "broker/version.hpp"
#include "store/open.hpp"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadConfiguration = 2;
constexpr int kExitCannotCheck = 2;

int run(const stoat::broker::Config& config) {
  namespace broker = stoat::broker;
  broker::log::start(config.log_level);
  broker::log::info("stoatd " + std::string(broker::version()) + ", data folder " +
                    config.data_dir.string());
  // Taken by sigwait below; blocked before any thread starts, so that all inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is the store's failure, not the end without a word

  std::atomic<bool> failed{false};
  broker::Server server(config);
  server.on_fatal([&](const std::string&) {
    failed = true;
    kill(getpid(), SIGTERM);
  });
  server.start();
  broker::notify_service("READY=1");
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  broker::notify_service("STOPPING=1");
  broker::log::info("stopping");
  server.stop();
  return failed ? kExitFailed : 0;
}

int check(const stoat::broker::Config& config) {
  try {
    return stoat::broker::check_data_folder(config.data_dir);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoatd: cannot check: %s\n", error.what());
    return kExitCannotCheck;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto command_line = stoat::broker::read_command_line(argc, argv);
    if (command_line.print) {
      std::puts(command_line.print->c_str());
      return 0;
    }
    if (command_line.config.check) return check(command_line.config);
    return run(command_line.config);
  } catch (const stoat::broker::ConfigError& error) {
    std::fprintf(stderr, "stoatd: %s\n", error.what());
    return kExitBadConfiguration;
  } catch (const stoat::broker::DefinitionsError& error) {
    std::fprintf(stderr, "stoatd: %s\n", error.what());
    return kExitBadConfiguration;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoatd: %s\n", error.what());
    return kExitFailed;
  }
}
