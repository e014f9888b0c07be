#include "broker/folder_inspection.hpp"

#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <exception>
#include <map>

#include "broker/message.hpp"
#include "broker/topology.hpp"
#include "store/folder_check.hpp"

namespace stoat::broker {
namespace {

namespace json = boost::json;

constexpr int kWhole = 0;
constexpr int kDamaged = 1;

struct Names {
  std::map<QueueId, std::string> queues;
  std::vector<std::string> malformed;  // keys of documents
};

// Document by document, so that one that is malformed hides no other.
Names names_in(const store::FolderReport& report) {
  Names names;
  for (const auto& [key, text] : report.topology) {
    try {
      const json::value document = json::parse(text);
      if (!key.starts_with("queue/")) continue;
      const json::object& queue = document.as_object();
      const QueueId id(queue.at("id").to_number<std::uint64_t>());
      names.queues[id] = "queue '" + std::string(queue.at("name").as_string()) + "' in vhost '" +
                         std::string(queue.at("vhost").as_string()) + "'";
    } catch (const std::exception&) {
      names.malformed.push_back(key);
    }
  }
  return names;
}

std::string stream_line(const store::FolderReport::Stream& stream, const std::string& name) {
  const std::string readable = std::to_string(stream.readable);
  if (!stream.counted) return name + ": " + readable + " messages, how many there were is lost";
  const std::string of = readable + " of " + std::to_string(*stream.counted) + " messages";
  if (*stream.counted > stream.readable) {
    return name + ": " + of + ", " + std::to_string(*stream.counted - stream.readable) +
           " cannot be read";
  }
  return name + ": " + of;
}

bool is_message(std::string_view stored) {
  return Message::from_stored(stored) != nullptr;
}

}  // namespace

std::vector<std::string> inspection_lines(const store::FolderReport& report) {
  std::vector<std::string> lines;
  for (const store::Damage& damage : report.damage) {
    lines.push_back("damaged: " + damage.file + ": " + damage.what);
  }
  const Names names = names_in(report);
  for (const std::string& key : names.malformed) {
    lines.push_back("damaged: the definition " + key + " is malformed");
  }
  for (const auto& stream : report.streams) {
    if (stream.readable == 0 && stream.counted == 0) continue;
    const auto name = names.queues.find(stream.stream.queue);
    lines.push_back(stream_line(stream, name != names.queues.end()
                                            ? name->second
                                            : "queue number " +
                                                  std::to_string(stream.stream.queue.value) +
                                                  ", whose definition cannot be read"));
  }
  return lines;
}

int check_data_folder(const std::filesystem::path& dir) {
  store::RocksOptions options;
  options.data_dir = dir;
  const auto scratch =
      std::filesystem::temp_directory_path() / ("stoat-check-" + std::to_string(getpid()));
  const store::FolderReport report = store::check_folder(options, scratch, is_message);
  bool damaged = !report.damage.empty();
  for (const std::string& line : inspection_lines(report)) {
    damaged = damaged || line.starts_with("damaged: ");
    std::puts(line.c_str());
  }
  if (!damaged) {
    try {
      std::vector<std::string> dropped;
      Topology::load(report.topology, dropped);
    } catch (const std::exception& error) {
      std::printf("damaged: %s\n", error.what());
      damaged = true;
    }
  }
  std::printf("data folder %s is %s\n", dir.c_str(),
              damaged ? "damaged; stoatd --salvage keeps all that can be read" : "whole");
  return damaged ? kDamaged : kWhole;
}

}  // namespace stoat::broker
