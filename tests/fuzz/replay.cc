#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr char kUsage[] =
    "usage: %s FOLDER... [--changed RUNS [--threads N] [--seed SEED]]\n"
    "Runs the target over the files of the folders, and then over so many changed copies of them.\n";

/// No input of more bytes is made.
constexpr size_t kMaxBytes = 512;
constexpr size_t kProgress = 100'000;

struct Options {
  std::vector<std::string> folders;
  uint64_t changed = 0;
  unsigned threads = 1;  ///< More than one only for targets that are thread-safe.
  uint64_t seed = std::random_device{}();
};

/// The input that this thread runs, for ReportInput.
thread_local std::string_view running;

/// Writes the input of the thread that crashed, as a line of hexadecimal digits for `xxd -r -p`; an empty
/// line if the thread has none, such as one of the server.
void ReportInput(int signal) {
  constexpr char kDigits[] = "0123456789abcdef";
  char line[2 * kMaxBytes + 1];
  size_t size = 0;
  for (const char c : running.substr(0, kMaxBytes)) {
    const auto byte = static_cast<uint8_t>(c);
    line[size++] = kDigits[byte >> 4];
    line[size++] = kDigits[byte & 15];
  }
  line[size++] = '\n';
  constexpr std::string_view kTitle = "it ended with this input:\n";
  if (::write(STDERR_FILENO, kTitle.data(), kTitle.size()) < 0 || ::write(STDERR_FILENO, line, size) < 0) {
    ::_exit(1);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void Run(std::string_view input) {
  running = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

/// Returns a copy of one of the inputs with a few changes, or bytes of its own. It depends on nothing but the
/// inputs and the seed.
std::string Changed(const std::vector<std::string>& inputs, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](size_t bound) { return static_cast<size_t>(random() % bound); };
  const auto byte = [&] { return static_cast<char>(random()); };
  const auto any = [&]() -> const std::string& { return inputs[below(inputs.size())]; };
  std::string input = any();
  if (below(16) == 0) {
    input.clear();
    for (size_t left = below(64); left > 0; --left) input += byte();
  }
  for (size_t changes = 1 + below(8); changes > 0; --changes) {
    const size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0: {
        const char filler = byte();  // before the count, whichever a compiler evaluates first
        input.insert(at, 1 + below(4), filler);
        break;
      }
      case 1:
        input.erase(at, 1 + below(8));
        break;
      case 2:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 3:
        if (at < input.size()) input[at] = byte();
        break;
      case 4: {  // a part of another
        const std::string& other = any();
        const size_t from = below(other.size() + 1);
        input.insert(at, other, from, 1 + below(32));
        break;
      }
      default:  // goes on as another
        input.resize(at);
        input += any();
        break;
    }
  }
  if (input.size() > kMaxBytes) input.resize(kMaxBytes);
  return input;
}

void RunChanged(const std::vector<std::string>& inputs, const Options& options) {
  std::fputs(fmt::format("seed {}\n", options.seed).c_str(), stderr);
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < options.threads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t number = next++; number < options.changed; number = next++) {
        Run(Changed(inputs, options.seed + number));
        if (number > 0 && number % kProgress == 0)
          std::fputs(fmt::format("{} inputs\n", number).c_str(), stderr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Returns false if the arguments are wrong.
bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--")) {
      options.folders.emplace_back(argument);
      continue;
    }
    if (++i == argc) return false;
    const std::string_view text = argv[i];
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return false;
    if (argument == "--changed") {
      options.changed = value;
    } else if (argument == "--threads" && value > 0) {
      options.threads = static_cast<unsigned>(value);
    } else if (argument == "--seed") {
      options.seed = value;
    } else {
      return false;
    }
  }
  return !options.folders.empty();
}

}  // namespace

/// Runs a target without libFuzzer: over the files of folders, so that everything that fuzzing has found
/// stays fixed, and over changed copies of them. The latter is for targets whose inputs are calls over a
/// connection, of which libFuzzer makes one at a time: on many threads they take a tenth of the time, and
/// they cross.
int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(stderr, kUsage, argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(signal, ReportInput);
  std::vector<std::string> inputs;
  for (const std::string& folder : options.folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  // They may be listed in any order, and the seed is to make the same inputs again.
  std::sort(inputs.begin(), inputs.end());
  if (inputs.empty()) return 1;
  for (const std::string& input : inputs) Run(input);
  if (options.changed > 0) RunChanged(inputs, options);
  std::fputs(fmt::format("{} inputs\n", inputs.size() + options.changed).c_str(), stdout);
  return 0;
}
