#include "registry/config.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "kvstore_api/json.h"
#include "kvstore_api/json_fields.h"
#include "shardmap/shard_map.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

/// Calls `read(JsonFields&)` for a nested object, if it is there.
template <typename Read>
void OptionalObject(JsonFields& fields, std::string_view name, Read read) {
  const Json* json = fields.Find(name);
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail(name, "must be an object");
  JsonFields inner(*json, fields.Path(name) + ".");
  read(inner);
  fields.Fail(inner.Finish());
}

template <typename T>
void ReadUint(JsonFields& fields, std::string_view name, uint64_t min, uint64_t max, T& value) {
  if (const auto given = fields.OptionalUint(name, min, max)) value = static_cast<T>(*given);
}

std::string ReadText(const fs::path& file, JsonFields& fields, std::string_view field) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fields.Fail(field, fmt::format("cannot read {}", file.string()));
  std::string text{std::istreambuf_iterator<char>(in), {}};
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

void ReadWeights(JsonFields& fields, std::vector<mysql::ShardWeight>& weights) {
  if (fields.Find("weights") == nullptr) return;
  const auto& list = fields.Array("weights");
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("weights[{}].", i)));
    mysql::ShardWeight weight;
    ReadUint(inner, "first", 0, ShardMap::kMaxShard, weight.first);
    ReadUint(inner, "last", 0, ShardMap::kMaxShard, weight.last);
    weight.weight = static_cast<uint32_t>(inner.Uint("weight", 0, 1'000'000));
    if (weight.first > weight.last) inner.Fail("last", "is below first");
    fields.Fail(inner.Finish());
    weights.push_back(weight);
  }
}

MySqlFleet ReadMySql(JsonFields& fields, const fs::path& folder) {
  MySqlFleet fleet;
  const auto path = [&](std::string_view name) -> std::string {
    const auto given = fields.OptionalString(name);
    return given && !given->empty() ? (folder / *given).string() : "";
  };
  fleet.options.user = fields.String("user");
  fleet.options.password = fields.OptionalString("password").value_or("");
  if (const std::string file = path("password_file"); !file.empty()) {
    fleet.options.password = ReadText(file, fields, "password_file");
  }
  fleet.zookeeper.servers = fields.OptionalString("zookeeper").value_or("");
  fleet.zookeeper.auth = fields.OptionalString("zookeeper_auth").value_or("");
  fleet.root = fields.OptionalString("root").value_or(fleet.root);
  fleet.id_map = path("id_map");
  fleet.mod_map = path("mod_map");
  const bool files = !fleet.id_map.empty() || !fleet.mod_map.empty();
  if (fleet.zookeeper.servers.empty() && (fleet.id_map.empty() || fleet.mod_map.empty())) {
    fields.Fail("zookeeper", "is missing; or give the files id_map and mod_map");
  }
  if (!fleet.zookeeper.servers.empty() && files) fields.Fail("id_map", "not together with zookeeper");
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    fleet.options.tls.required = tls.OptionalBool("required").value_or(true);
    const auto file = [&](std::string_view name) -> std::string {
      const auto given = tls.OptionalString(name);
      return given && !given->empty() ? (folder / *given).string() : "";
    };
    fleet.options.tls.ca = file("ca");
    fleet.options.tls.cert = file("cert");
    fleet.options.tls.key = file("key");
  });
  OptionalObject(fields, "pool", [&](JsonFields& pool) { ReadPool(pool, fleet.options.pool); });
  OptionalObject(fields, "breaker", [&](JsonFields& breaker) {
    ReadUint(breaker, "failures", 1, 1000, fleet.options.breaker.failures);
    ReadUint(breaker, "min_pause_ms", 1, 600'000, fleet.options.breaker.min_pause_ms);
    ReadUint(breaker, "max_pause_ms", 1, 600'000, fleet.options.breaker.max_pause_ms);
  });
  ReadWeights(fields, fleet.options.weights);
  ReadUint(fields, "purge_cells_per_s", 0, 1'000'000'000, fleet.options.purge_cells_per_s);
  return fleet;
}

}  // namespace

absl::StatusOr<OpenOptions> ParseConfig(std::string_view text, const fs::path& folder) {
  const auto json = ParseJson(text);
  if (!json.ok())
    return absl::InvalidArgumentError(fmt::format("config: {}", std::string(json.status().message())));
  if (!json->is_object()) return absl::InvalidArgumentError("config: must be a JSON object");
  JsonFields fields(*json, "config: ");
  OpenOptions options;
  options.data = folder / fields.String("data");
  ReadUint(fields, "cache_bytes", 0, uint64_t{1} << 40, options.cache_bytes);
  options.default_backend = fields.OptionalString("default_backend").value_or(options.default_backend);
  OptionalObject(fields, "mysql", [&](JsonFields& inner) { options.mysql = ReadMySql(inner, folder); });
  if (options.default_backend != kRocksDb && (options.default_backend != kMySql || !options.mysql)) {
    fields.Fail("default_backend",
                fmt::format("'{}' is not a backend of this configuration", options.default_backend));
  }
  if (auto status = fields.Finish(); !status.ok()) return status;
  return options;
}

absl::StatusOr<OpenOptions> ReadConfig(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("config: cannot open {}", file.string()));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return ParseConfig(text, fs::absolute(file).parent_path());
}

}  // namespace kvstore
