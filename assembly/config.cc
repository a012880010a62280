#include "assembly/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assembly/backend_reader.h"
#include "assembly/config_fields.h"
#include "assembly/operate_config.h"
#include "assembly/server_config.h"
#include "base/files.h"
#include "json/json.h"
#include "json/json_fields.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

Coordination ReadZooKeeper(JsonFields& fields, const fs::path& folder) {
  Coordination coordination;
  coordination.zookeeper.servers = fields.String("servers");
  coordination.zookeeper.auth = ReadSecret(fields, "auth", folder);
  ReadRoot(fields, coordination.root);
  ReadUint(fields, "session_timeout_ms", 1'000, 600'000, coordination.zookeeper.session_timeout_ms);
  ReadUint(fields, "call_timeout_ms", 100, 600'000, coordination.zookeeper.call_timeout_ms);
  return coordination;
}

/// The backends of the field "backends", which is an object: each has its name as the key.
std::vector<BackendConfig> ReadNamedBackends(JsonFields& fields, BackendReaderContext& context) {
  std::vector<BackendConfig> configs;
  OptionalObject(fields, "backends", [&](JsonFields& backends) {
    for (const auto& item : fields.Find("backends")->items()) {
      const std::string& name = item.key();
      if (name.empty()) fields.Fail("backends", "a backend needs a name, and one key is empty");
      OptionalObject(backends, name, [&](JsonFields& one) {
        if (auto config = BackendReader::Read(name, one, context)) configs.push_back(*std::move(config));
      });
    }
  });
  return configs;
}

/// The backends of a configuration without the field "backends": the embedded engine, and the MySQL servers
/// of the field "mysql" if it is there. Each is named for its type.
std::vector<BackendConfig> ReadUnnamedBackends(JsonFields& fields, BackendReaderContext& context) {
  std::vector<BackendConfig> configs;
  configs.push_back({.name = kRocksDb, .type = kRocksDb, .options = context.rocksdb});
  OptionalObject(fields, "mysql", [&](JsonFields& mysql) {
    configs.push_back(BackendReader::ReadAs(kMySql, kMySql, mysql, context));
  });
  return configs;
}

void ReadBackends(JsonFields& fields, BackendReaderContext& context, OpenOptions& options) {
  const bool named = fields.Find("backends") != nullptr;
  if (named && fields.Find("mysql") != nullptr) {
    fields.Fail("mysql",
                "must be left out, because backends is given: put it there, as \"NAME\": "
                "{\"type\": \"mysql\", ...}");
  }
  options.backends = named ? ReadNamedBackends(fields, context) : ReadUnnamedBackends(fields, context);
  const auto given = fields.OptionalString("default_backend");
  if (given) {
    options.default_backend = *given;
  } else if (options.backends.size() == 1) {
    options.default_backend = options.backends.front().name;
  }
  std::vector<std::string_view> names;
  for (const BackendConfig& backend : options.backends) {
    if (backend.name == options.default_backend) return;
    names.push_back(backend.name);
  }
  if (!given) {
    return fields.Fail("default_backend", "is missing: say which backend is for datasets that name none");
  }
  // One whose own mistake was told above is not a mistake of the default.
  if (const Json* all = fields.Find("backends"); all != nullptr && all->is_object() && all->contains(*given))
    return;
  std::string problem = fmt::format("'{}' is not a backend of this configuration", *given);
  if (!names.empty()) problem += fmt::format("; its backends are {}", fmt::join(names, ", "));
  fields.Fail("default_backend", problem);
}

/// As ParseConfig.
///
/// name  what an error calls a text that has no fields to name: "config: /etc/kvstore/kv.json".
absl::StatusOr<Config> ParseNamed(std::string_view text, const std::string& name, const fs::path& folder,
                                  const BackendTypes& types) {
  const auto json = ParseJson(text);
  if (!json.ok())
    return absl::InvalidArgumentError(fmt::format("{}: {}", name, std::string(json.status().message())));
  if (!json->is_object()) return absl::InvalidArgumentError(fmt::format("{}: must be a JSON object", name));
  JsonFields fields(*json, "config: ");
  Config config;
  OpenOptions& store = config.store;
  store.data = folder / fields.String("data");
  BackendReaderContext context{.types = types, .folder = folder};
  ReadRocksDbOptions(fields, context.rocksdb);
  OptionalObject(fields, "zookeeper",
                 [&](JsonFields& zookeeper) { store.coordination = ReadZooKeeper(zookeeper, folder); });
  context.coordination = store.coordination;
  ReadBackends(fields, context, store);
  OptionalObject(fields, "server",
                 [&](JsonFields& server) { ReadServerOptions(server, folder, config.server); });
  OptionalObject(fields, "backup",
                 [&](JsonFields& backup) { config.backup = ReadBackupConfig(backup, folder); });
  OptionalObject(fields, "operate",
                 [&](JsonFields& operate) { ReadOperateOptions(operate, folder, config.operate); });
  store.keep_logs = config.backup && config.backup->log;
  if (auto status = fields.FinishAll(); !status.ok()) return status;
  return config;
}

}  // namespace

absl::StatusOr<Config> ParseConfig(std::string_view text, const fs::path& folder, const BackendTypes& types) {
  return ParseNamed(text, "config", folder, types);
}

absl::StatusOr<Config> ReadConfig(const fs::path& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        fmt::format("config: {}", std::string(text.status().message())));
  }
  return ParseNamed(*text, fmt::format("config: {}", file.string()), fs::absolute(file).parent_path(),
                    BuiltInBackendTypes());
}

}  // namespace kvstore
