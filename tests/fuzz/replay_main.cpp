// Runs a fuzz target without libFuzzer: over every corpus file, then over seeded mutations of each.
//
//   stoat_fuzz_NAME [--mutations N] [--seed S] FILE_OR_FOLDER...
//
// A failure names its corpus file, seed and number: the same command fails again on the same input.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

std::string g_current;  // what a failure is reported with

void report_current() {
  std::fprintf(stderr, "failing input: %s\n", g_current.c_str());
}

void run(const Input& input) {
  // A copy that ends where its allocation ends, so that a sanitizer sees a read past it.
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

// One small change, of the kinds that break parsers: bits, lengths, cuts, repeats, splices.
void mutate_once(Input& input, const std::vector<Input>& corpus, Random& random) {
  static constexpr std::uint8_t kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xce, 0xff};
  const std::size_t at = below(random, input.size() + 1);
  const std::size_t length = below(random, std::min<std::size_t>(input.size() - at, 32) + 1);
  const auto from = input.begin() + static_cast<std::ptrdiff_t>(at);
  const auto to = from + static_cast<std::ptrdiff_t>(length);
  switch (below(random, 6)) {
    case 0:
      if (at < input.size()) *from ^= static_cast<std::uint8_t>(1u << below(random, 8));
      break;
    case 1:
      if (at < input.size()) *from = kTelling[below(random, std::size(kTelling))];
      break;
    case 2:
      input.erase(from, to);
      break;
    case 3: {
      const Input repeated(from, to);
      input.insert(from, repeated.begin(), repeated.end());
      break;
    }
    case 4:
      input.insert(from, static_cast<std::uint8_t>(below(random, 256)));
      break;
    default: {
      const Input& other = corpus[below(random, corpus.size())];
      const std::size_t tail = below(random, other.size() + 1);
      input.erase(from, input.end());
      input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(tail), other.end());
    }
  }
}

std::vector<fs::path> files_in(const std::vector<fs::path>& places) {
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    if (fs::is_directory(place)) {
      for (const auto& entry : fs::directory_iterator(place)) files.push_back(entry.path());
    } else {
      files.push_back(place);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Input contents_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", file.c_str());
    std::exit(2);
  }
  return Input(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  std::vector<fs::path> places;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      places.emplace_back(argument);
    }
  }

  std::signal(SIGABRT, [](int) { report_current(); });
  std::signal(SIGSEGV, [](int) {
    report_current();
    std::_Exit(1);
  });
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(report_current);
  const std::vector<fs::path> files = files_in(places);
  if (files.empty()) {
    std::fprintf(stderr, "no corpus\n");
    return 2;
  }
  std::vector<Input> corpus;
  for (const fs::path& file : files) corpus.push_back(contents_of(file));
  for (std::size_t f = 0; f < files.size(); ++f) {
    g_current = files[f].filename().string();
    run(corpus[f]);
    Random random(seed + f);
    for (std::uint64_t number = 0; number < mutations; ++number) {
      Input input = corpus[f];
      for (std::uint64_t changes = 1 + below(random, 4); changes > 0; --changes) {
        mutate_once(input, corpus, random);
      }
      g_current = files[f].filename().string() + ", mutation " + std::to_string(number) +
                  " of seed " + std::to_string(seed);
      run(input);
    }
  }
  std::printf("%zu corpus files, %llu mutations of each\n", files.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}
