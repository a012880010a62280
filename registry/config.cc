#include "registry/config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/files.h"
#include "kvstore_api/json.h"
#include "kvstore_api/json_fields.h"
#include "shardmap/shard_map.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMinWalBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxWalBytes = uint64_t{1} << 40;

/// Calls `read(JsonFields&)` for a nested object, if it is there.
template <typename Read>
void OptionalObject(JsonFields& fields, std::string_view name, Read read) {
  const Json* json = fields.Find(name);
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail(name, "must be an object");
  JsonFields inner(*json, fields.Path(name) + ".");
  read(inner);
  fields.FailAll(inner);
}

template <typename T>
void ReadUint(JsonFields& fields, std::string_view name, uint64_t min, uint64_t max, T& value) {
  if (const auto given = fields.OptionalUint(name, min, max)) value = static_cast<T>(*given);
}

/// The path in a field, relative to the folder; empty if it is not there.
fs::path PathIn(JsonFields& fields, std::string_view name, const fs::path& folder) {
  const auto given = fields.OptionalString(name);
  return given && !given->empty() ? folder / *given : fs::path();
}

std::string ReadText(const fs::path& file, JsonFields& fields, std::string_view field) {
  const auto read = ReadFile(file);
  if (!read.ok()) fields.Fail(field, std::string(read.status().message()));
  std::string text = read.value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

void ReadPool(JsonFields& fields, mysql::PoolOptions& pool) {
  ReadUint(fields, "max_connections", 1, 1000, pool.max_connections);
  ReadUint(fields, "min_connections", 0, 1000, pool.min_connections);
  ReadUint(fields, "wait_ms", 0, 600'000, pool.wait_ms);
  ReadUint(fields, "lifetime_s", 1, 86'400, pool.lifetime_s);
  ReadUint(fields, "idle_s", 1, 86'400, pool.idle_s);
  ReadUint(fields, "check_after_ms", 0, 86'400'000, pool.check_after_ms);
  ReadUint(fields, "connect_timeout_s", 1, 600, pool.connect_timeout_s);
  ReadUint(fields, "read_timeout_s", 1, 3600, pool.read_timeout_s);
  ReadUint(fields, "write_timeout_s", 1, 3600, pool.write_timeout_s);
  ReadUint(fields, "lock_wait_s", 1, 3600, pool.lock_wait_s);
  ReadUint(fields, "statements", 1, 16'000, pool.statements);
  if (pool.lock_wait_s >= pool.read_timeout_s) {
    fields.Fail("lock_wait_s",
                fmt::format("{} is not below read_timeout_s, {}", pool.lock_wait_s, pool.read_timeout_s));
  }
}

void ReadWeights(JsonFields& fields, ShardWeights& weights) {
  if (fields.Find("weights") == nullptr) return;
  const auto& list = fields.Array("weights");
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("weights[{}].", i)));
    ShardWeight weight;
    ReadUint(inner, "first", 0, ShardMap::kMaxShard, weight.first);
    ReadUint(inner, "last", 0, ShardMap::kMaxShard, weight.last);
    weight.weight = static_cast<uint32_t>(inner.Uint("weight", 0, ShardWeight::kMax));
    if (weight.first > weight.last) inner.Fail("last", "is below first");
    fields.FailAll(inner);
    weights.push_back(weight);
  }
}

/// A secret: in the field itself, in a file (NAME_file) or in the environment (NAME_env names the variable).
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

void ReadZooKeeper(JsonFields& fields, const fs::path& folder, Coordination& coordination) {
  coordination.zookeeper.servers = fields.String("servers");
  coordination.zookeeper.auth = ReadSecret(fields, "auth", folder);
  coordination.root = fields.OptionalString("root").value_or(coordination.root);
  ReadUint(fields, "session_timeout_ms", 1'000, 600'000, coordination.zookeeper.session_timeout_ms);
  ReadUint(fields, "call_timeout_ms", 100, 600'000, coordination.zookeeper.call_timeout_ms);
}

MySqlFleet ReadMySql(JsonFields& fields, const fs::path& folder,
                     const std::optional<Coordination>& coordination) {
  MySqlFleet fleet;
  fleet.options.user = fields.String("user");
  fleet.options.password = ReadSecret(fields, "password", folder);
  if (coordination) {
    fleet.zookeeper = coordination->zookeeper;
    fleet.root = coordination->root;
  }
  const auto servers = fields.OptionalString("zookeeper");
  fleet.zookeeper.servers = servers.value_or(fleet.zookeeper.servers);
  fleet.zookeeper.auth = fields.OptionalString("zookeeper_auth").value_or(fleet.zookeeper.auth);
  fleet.root = fields.OptionalString("root").value_or(fleet.root);
  fleet.id_map = PathIn(fields, "id_map", folder);
  fleet.mod_map = PathIn(fields, "mod_map", folder);
  const bool files = !fleet.id_map.empty() || !fleet.mod_map.empty();
  if (files && servers) fields.Fail("id_map", "not together with zookeeper");
  if (files && !servers) fleet.zookeeper.servers.clear();
  if (fleet.zookeeper.servers.empty() && (fleet.id_map.empty() || fleet.mod_map.empty())) {
    fields.Fail("zookeeper", "is missing; or give the files id_map and mod_map");
  }
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    fleet.options.tls.required = tls.OptionalBool("required").value_or(true);
    fleet.options.tls.ca = PathIn(tls, "ca", folder);
    fleet.options.tls.cert = PathIn(tls, "cert", folder);
    fleet.options.tls.key = PathIn(tls, "key", folder);
    // Without encryption nobody would look at them, and whoever wrote them believes that somebody does.
    if (!fleet.options.tls.required &&
        !(fleet.options.tls.ca + fleet.options.tls.cert + fleet.options.tls.key).empty()) {
      tls.Fail("required", "is false, and then ca, cert and key are of no effect: leave them out, or this");
    }
  });
  OptionalObject(fields, "pool", [&](JsonFields& pool) { ReadPool(pool, fleet.options.pool); });
  OptionalObject(fields, "breaker", [&](JsonFields& breaker) {
    ReadUint(breaker, "failures", 1, 1000, fleet.options.breaker.failures);
    ReadUint(breaker, "min_pause_ms", 1, 600'000, fleet.options.breaker.min_pause_ms);
    ReadUint(breaker, "max_pause_ms", 1, 600'000, fleet.options.breaker.max_pause_ms);
  });
  const auto read_login = [&](const char* name, Login& login) {
    OptionalObject(fields, name, [&](JsonFields& inner) {
      login.user = inner.String("user");
      login.password = ReadSecret(inner, "password", folder);
    });
  };
  read_login("operator", fleet.admin);
  read_login("replication", fleet.replication);
  ReadWeights(fields, fleet.options.weights);
  ReadUint(fields, "purge_cells_per_s", 0, 1'000'000'000, fleet.options.purge_cells_per_s);
  return fleet;
}

RemoteServer ReadRemote(JsonFields& fields, const fs::path& folder) {
  RemoteServer remote;
  remote.address = fields.String("address");
  remote.options.token = ReadSecret(fields, "token", folder);
  remote.options.plain_token = fields.OptionalBool("plain_token").value_or(false);
  ReadUint(fields, "connections", 1, 64, remote.options.connections);
  ReadUint(fields, "deadline_ms", 1, 3'600'000, remote.options.deadline_ms);
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    ClientTls& read = remote.options.tls.emplace();
    read.ca = PathIn(tls, "ca", folder);
    read.cert = PathIn(tls, "cert", folder);
    read.key = PathIn(tls, "key", folder);
    read.server_name = tls.OptionalString("server_name").value_or("");
  });
  return remote;
}

/// One entry of `backends`. There can be many remote ones, and one of each other kind.
void ReadBackend(JsonFields& fields, const std::string& name, const fs::path& folder, OpenOptions& options) {
  const std::string type = fields.String("type");
  if (type == kRocksDb) {
    if (!options.rocksdb.empty()) fields.Fail("type", "there can be one backend of type rocksdb");
    options.rocksdb = name;
    ReadUint(fields, "cache_bytes", 0, uint64_t{1} << 40, options.cache_bytes);
    ReadUint(fields, "wal_bytes", kMinWalBytes, kMaxWalBytes, options.wal_bytes);
  } else if (type == kMySql) {
    if (options.mysql) fields.Fail("type", "there can be one backend of type mysql");
    options.mysql_name = name;
    options.mysql = ReadMySql(fields, folder, options.coordination);
  } else if (type == "remote") {
    options.remotes.emplace(name, ReadRemote(fields, folder));
  } else if (!type.empty()) {
    fields.Fail("type", fmt::format("'{}' is none of rocksdb, mysql, remote", type));
  }
}

void ReadBackends(JsonFields& fields, const fs::path& folder, OpenOptions& options) {
  const bool named = fields.Find("backends") != nullptr;
  if (named && fields.Find("mysql") != nullptr) fields.Fail("mysql", "not together with backends");
  if (named) {
    options.rocksdb.clear();
    OptionalObject(fields, "backends", [&](JsonFields& backends) {
      for (const auto& [name, json] : fields.Find("backends")->items()) {
        if (name.empty()) backends.Fail(name, "a backend needs a name");
        OptionalObject(backends, name,
                       [&, &name = name](JsonFields& one) { ReadBackend(one, name, folder, options); });
      }
    });
  } else {
    OptionalObject(fields, "mysql", [&](JsonFields& inner) {
      options.mysql = ReadMySql(inner, folder, options.coordination);
    });
  }
  std::set<std::string> names;
  if (!options.rocksdb.empty()) names.insert(options.rocksdb);
  if (options.mysql) names.insert(options.mysql_name);
  for (const auto& [name, remote] : options.remotes) names.insert(name);
  const auto given = fields.OptionalString("default_backend");
  options.default_backend = given.value_or(names.size() == 1 ? *names.begin() : options.default_backend);
  if (!names.contains(options.default_backend)) {
    fields.Fail("default_backend", given ? fmt::format("'{}' is not a backend of this configuration", *given)
                                         : "is missing: say which backend is for datasets that name none");
  }
}

void ReadLimits(JsonFields& fields, ServerLimits& limits) {
  ReadUint(fields, "max_calls", 1, 1'000'000, limits.max_calls);
  ReadUint(fields, "max_bytes", size_t{32} << 20, uint64_t{1} << 40, limits.max_bytes);
  ReadUint(fields, "threads", 1, 1'000, limits.threads);
  ReadUint(fields, "call_ms", 1, 86'400'000, limits.call_ms);
  ReadUint(fields, "stall_ms", 100, 86'400'000, limits.stall_ms);
  ReadUint(fields, "drain_ms", 0, 86'400'000, limits.drain_ms);
  ReadUint(fields, "remembered", 0, 10'000'000, limits.remembered);
  ReadUint(fields, "remember_ms", 0, 86'400'000, limits.remember_ms);
}

void ReadServer(JsonFields& fields, const fs::path& folder, ServerOptions& server) {
  if (fields.Find("listen") != nullptr) {
    server.listen.clear();
    const auto& list = fields.Array("listen");
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].is_string()) {
        server.listen.push_back(list[i].get<std::string>());
      } else {
        fields.Fail(fmt::format("listen[{}]", i), "must be a string: \"host:port\" or \"unix:/path\"");
      }
    }
    if (list.empty()) fields.Fail("listen", "must name an address");
  }
  server.http = fields.OptionalString("http").value_or("");
  server.http_open = fields.OptionalBool("http_open").value_or(false);
  server.tokens = PathIn(fields, "tokens", folder);
  server.insecure = fields.OptionalBool("insecure").value_or(false);
  ReadUint(fields, "slow_ms", 0, 86'400'000, server.slow_ms);
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    server.tls.cert = folder / tls.String("cert");
    server.tls.key = folder / tls.String("key");
    server.tls.client_ca = PathIn(tls, "client_ca", folder);
  });
  OptionalObject(fields, "limits", [&](JsonFields& limits) { ReadLimits(limits, server.limits); });
}

}  // namespace

absl::StatusOr<Config> ParseConfig(std::string_view text, const fs::path& folder) {
  const auto json = ParseJson(text);
  if (!json.ok())
    return absl::InvalidArgumentError(fmt::format("config: {}", std::string(json.status().message())));
  if (!json->is_object()) return absl::InvalidArgumentError("config: must be a JSON object");
  JsonFields fields(*json, "config: ");
  Config config;
  OpenOptions& store = config.store;
  store.data = folder / fields.String("data");
  ReadUint(fields, "cache_bytes", 0, uint64_t{1} << 40, store.cache_bytes);
  ReadUint(fields, "wal_bytes", kMinWalBytes, kMaxWalBytes, store.wal_bytes);
  OptionalObject(fields, "zookeeper", [&](JsonFields& zookeeper) {
    ReadZooKeeper(zookeeper, folder, store.coordination.emplace());
  });
  ReadBackends(fields, folder, store);
  OptionalObject(fields, "server", [&](JsonFields& server) { ReadServer(server, folder, config.server); });
  if (auto status = fields.FinishAll(); !status.ok()) return status;
  return config;
}

absl::StatusOr<Config> ReadConfig(const fs::path& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        fmt::format("config: {}", std::string(text.status().message())));
  }
  return ParseConfig(*text, fs::absolute(file).parent_path());
}

}  // namespace kvstore
