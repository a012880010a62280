#include "assembly/config_fields.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/files.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxCacheBytes = uint64_t{1} << 40;
constexpr uint64_t kMinWalBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxWalBytes = uint64_t{1} << 40;

/// Returns the text of a file, without line ends at its end.
std::string ReadText(const fs::path& file, JsonFields& fields, std::string_view field) {
  const auto read = ReadFile(file);
  if (!read.ok()) fields.Fail(field, std::string(read.status().message()));
  std::string text = read.value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

fs::path PathIn(JsonFields& fields, std::string_view name, const fs::path& folder) {
  const auto given = fields.OptionalString(name);
  return given && !given->empty() ? folder / *given : fs::path();
}

void ReadRoot(JsonFields& fields, std::string& root) {
  const auto given = fields.OptionalString("root");
  if (!given) return;
  root = *given;
  // ZooKeeper would refuse the paths that are made of it, with an error that does not name the field.
  if (!root.empty() &&
      (!root.starts_with('/') || root.ends_with('/') || root.find("//") != std::string::npos)) {
    fields.Fail("root",
                fmt::format("'{}' is not the path of a node of ZooKeeper: it must begin with a slash, "
                            "and must not end with one or have two in a row, as in /kvstore",
                            root));
  }
}

std::string ReadSecret(JsonFields& fields, const std::string& name, const fs::path& folder) {
  std::string secret = fields.OptionalString(name).value_or("");
  if (const fs::path file = PathIn(fields, name + "_file", folder); !file.empty()) {
    secret = ReadText(file, fields, name + "_file");
  }
  if (const auto variable = fields.OptionalString(name + "_env")) {
    const char* value = std::getenv(variable->c_str());
    if (value == nullptr)
      fields.Fail(name + "_env", fmt::format("{} is not set in the environment", *variable));
    secret = value == nullptr ? "" : value;
  }
  return secret;
}

std::optional<ClientTls> ReadClientTls(JsonFields& fields, const fs::path& folder) {
  std::optional<ClientTls> read;
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    read = ClientTls{.ca = PathIn(tls, "ca", folder),
                     .cert = PathIn(tls, "cert", folder),
                     .key = PathIn(tls, "key", folder),
                     .server_name = tls.OptionalString("server_name").value_or("")};
    if (read->cert.empty() != read->key.empty()) {
      tls.Fail(read->cert.empty() ? "cert" : "key", "is missing; cert and key belong together");
    }
  });
  return read;
}

void ReadRocksDbOptions(JsonFields& fields, RocksDbOptions& options) {
  ReadUint(fields, "cache_bytes", 0, kMaxCacheBytes, options.cache_bytes);
  if (const auto answers = fields.OptionalBool("cache_answers")) options.cache_answers = *answers;
  ReadUint(fields, "wal_bytes", kMinWalBytes, kMaxWalBytes, options.wal_bytes);
}

}  // namespace kvstore
