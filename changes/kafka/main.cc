#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "changes/kafka/topic.h"

/// kv-kafka: reads lines of `kv changes`, sends each as a message to a topic of Kafka, and prints the token
/// of what is stored there. `kv changes --sink` starts it.
namespace kvstore::kafka {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
/// A transaction with so much is committed.
constexpr size_t kTransactionBytes = size_t{4} << 20;
/// A line that is longer is none of kv changes.
constexpr size_t kMaxLineBytes = size_t{64} << 20;

/// Returns the key of a line's message: what all changes of one column, object or entry have in common, and
/// changes of a whole row with those of its columns.
std::string KeyOf(const nlohmann::json& line) {
  for (const char* const name : {"row", "object_id", "from"}) {
    const auto found = line.find(name);
    if (found == line.end()) continue;
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  return "";
}

/// Sends the change of a line, if it has one. Returns its token.
std::string Deal(Topic& topic, std::string_view text) {
  const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("token") || !line["token"].is_string()) {
    throw std::runtime_error("standard input: has a line that is none of kv changes");
  }
  std::string token = line["token"];
  if (line.contains("at")) topic.Send(KeyOf(line), text, token);
  return token;
}

void Tell(const std::string& token) {
  if (token.empty()) return;
  const std::string line = token + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (wrote < 0 && errno != EINTR) throw std::runtime_error("cannot write to standard output");
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
}

/// Returns false at the end of the input.
bool Read(std::string& text) {
  const size_t before = text.size();
  text.resize(before + kReadBytes);
  const ssize_t got = ::read(STDIN_FILENO, text.data() + before, kReadBytes);
  text.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got < 0 && errno != EINTR)
    throw std::runtime_error(std::string("standard input: ") + std::strerror(errno));
  return got != 0;
}

void Run(const TopicOptions& options) {
  Topic topic(options);
  std::string text;
  std::string token;  // of the line that was sent last, as long as it is not told
  const auto commit = [&] {
    topic.Commit();
    Tell(std::exchange(token, {}));
  };
  for (bool more = true; more;) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    // As long as there is more to read it goes into the same transaction.
    if (::poll(&input, 1, 0) == 0) {
      commit();
      ::poll(&input, 1, -1);
    }
    more = Read(text);
    size_t begin = 0;
    for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      token = Deal(topic, std::string_view(text).substr(begin, end - begin));
      if (topic.pending_bytes() > kTransactionBytes) commit();
    }
    text.erase(0, begin);
    if (text.size() > kMaxLineBytes) throw std::runtime_error("standard input: has a line that does not end");
  }
  commit();
}

}  // namespace
}  // namespace kvstore::kafka

int main(int argc, char** argv) {
  CLI::App app(
      "Reads lines of kv changes, and sends each change as a message to a topic of Kafka: the line itself, "
      "with the row, the object's ID, or the ID that a mapping is from as the key, and a header \"token\". "
      "Prints the token up to which everything is stored.");
  app.footer(
      "Messages are stored in transactions, in the order of their keys. After another start some may be sent "
      "again; what the program that ran before still had on its way is not stored any more.\n\n"
      "Example: kv changes events --follow --consumer kafka --sink 'kv-kafka --brokers host:9092 --topic "
      "events'\n\nExit codes: 0 everything is stored; 1 something failed; 2 wrong usage.");
  kvstore::kafka::TopicOptions options;
  std::vector<std::string> settings;
  app.add_option("--brokers", options.brokers, "Some brokers of the cluster")
      ->type_name("HOST:PORT,...")
      ->required();
  app.add_option("--topic", options.topic, "The topic, which must be there, or be made by the brokers")
      ->required();
  app.add_option(
      "--id", options.id,
      "The transactional ID, which no other program may have at the same time; kv-TOPIC if it is not given");
  app.add_option("--set", settings,
                 "A setting of librdkafka, such as security.protocol=ssl; may be given again")
      ->type_name("NAME=VALUE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.id.empty()) options.id = "kv-" + options.topic;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "kv-kafka: --set: '%s' is not NAME=VALUE\n", setting.c_str());
      return 2;
    }
    options.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  try {
    kvstore::kafka::Run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kv-kafka: %s\n", error.what());
    return 1;
  }
  return 0;
}
