#include "assembly/mysql_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "assembly/backend_opener.h"
#include "assembly/backend_reader.h"
#include "assembly/config_fields.h"
#include "assembly/mysql_backend.h"
#include "shardmap/shard_map.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

/// Refuses a lower end above the upper one. A default gives way to an end that was given.
template <typename Number>
void CheckOrder(JsonFields& fields, const char* low_field, Number& low, const char* high_field,
                Number& high) {
  if (fields.Find(high_field) == nullptr) high = std::max(high, low);
  if (fields.Find(low_field) == nullptr) low = std::min(low, high);
  if (low > high) fields.Fail(low_field, fmt::format("{} is above {}, {}", low, high_field, high));
}

void ReadPool(JsonFields& fields, mysql::PoolOptions& pool) {
  ReadUint(fields, "max_connections", 1, 1000, pool.max_connections);
  ReadUint(fields, "min_connections", 0, 1000, pool.min_connections);
  ReadUint(fields, "max_total", 1, 100'000, pool.max_total);
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
  CheckOrder(fields, "min_connections", pool.min_connections, "max_connections", pool.max_connections);
}

void ReadBreaker(JsonFields& fields, mysql::BreakerOptions& breaker) {
  ReadUint(fields, "failures", 1, 1000, breaker.failures);
  ReadUint(fields, "min_pause_ms", 1, 600'000, breaker.min_pause_ms);
  ReadUint(fields, "max_pause_ms", 1, 600'000, breaker.max_pause_ms);
  CheckOrder(fields, "min_pause_ms", breaker.min_pause_ms, "max_pause_ms", breaker.max_pause_ms);
}

void ReadTls(JsonFields& fields, const fs::path& folder, mysql::TlsOptions& tls) {
  tls.required = fields.OptionalBool("required").value_or(true);
  tls.ca = PathIn(fields, "ca", folder);
  tls.cert = PathIn(fields, "cert", folder);
  tls.key = PathIn(fields, "key", folder);
  // The connector would not read the files without encryption, while whoever named them believes that it
  // does.
  if (!tls.required && !(tls.ca + tls.cert + tls.key).empty()) {
    fields.Fail("required",
                "is false, so that ca, cert and key would have no effect: leave those out, or this field");
  }
}

void ReadWeights(JsonFields& fields, ShardWeights& weights) {
  if (fields.Find("weights") == nullptr) return;
  const auto& list = fields.Array("weights");
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("weights[{}].", i)));
    ShardWeight weight;
    weight.first = static_cast<uint32_t>(inner.Uint("first", 0, ShardMap::kMaxShard));
    weight.last = static_cast<uint32_t>(inner.Uint("last", 0, ShardMap::kMaxShard));
    weight.weight = static_cast<uint32_t>(inner.Uint("weight", 0, ShardWeight::kMax));
    if (inner.Find("last") != nullptr && weight.first > weight.last) inner.Fail("last", "is below first");
    fields.FailAll(inner);
    weights.push_back(weight);
  }
}

/// Where the shard maps are: in the ZooKeeper that the fields name, in files, or else where the catalog is.
void ReadMaps(JsonFields& fields, const BackendReaderContext& context, MySqlFleetOptions& fleet) {
  if (context.coordination) {
    fleet.zookeeper = context.coordination->zookeeper;
    fleet.root = context.coordination->root;
  }
  const auto servers = fields.OptionalString("zookeeper");
  fleet.zookeeper.servers = servers.value_or(fleet.zookeeper.servers);
  fleet.zookeeper.auth = fields.OptionalString("zookeeper_auth").value_or(fleet.zookeeper.auth);
  ReadRoot(fields, fleet.root);
  fleet.id_map = PathIn(fields, "id_map", context.folder);
  fleet.mod_map = PathIn(fields, "mod_map", context.folder);
  const bool files = !fleet.id_map.empty() || !fleet.mod_map.empty();
  if (files && servers) {
    fields.Fail(fleet.id_map.empty() ? "mod_map" : "id_map",
                "names a file, but zookeeper is given, too: the shard maps are in files or in ZooKeeper; "
                "leave one of them out");
  }
  if (files && !servers) fleet.zookeeper.servers.clear();
  if (fleet.zookeeper.servers.empty() && (fleet.id_map.empty() || fleet.mod_map.empty())) {
    fields.Fail("zookeeper", "is missing; or give the files id_map and mod_map");
  }
}

void ReadLogin(JsonFields& fields, std::string_view name, const fs::path& folder, Login& login) {
  OptionalObject(fields, name, [&](JsonFields& inner) {
    login.user = inner.String("user");
    login.password = ReadSecret(inner, "password", folder);
  });
}

std::any ReadMySql(BackendReader& reader) {
  JsonFields& fields = reader.fields();
  const fs::path& folder = reader.context().folder;
  MySqlFleetOptions fleet;
  mysql::MySqlOptions& options = fleet.options;
  options.user = fields.String("user");
  options.password = ReadSecret(fields, "password", folder);
  ReadMaps(fields, reader.context(), fleet);
  OptionalObject(fields, "tls", [&](JsonFields& tls) { ReadTls(tls, folder, options.tls); });
  OptionalObject(fields, "pool", [&](JsonFields& pool) { ReadPool(pool, options.pool); });
  OptionalObject(fields, "breaker", [&](JsonFields& breaker) { ReadBreaker(breaker, options.breaker); });
  ReadLogin(fields, "operator", folder, fleet.admin);
  ReadLogin(fields, "replication", folder, fleet.replication);
  ReadWeights(fields, options.weights);
  options.tables_on_first_use = fields.OptionalBool("tables_on_first_use").value_or(false);
  if (options.tables_on_first_use && fleet.zookeeper.servers.empty()) {
    fields.Fail("tables_on_first_use",
                "needs the shard maps in ZooKeeper, where the tables that were made are recorded");
  }
  ReadUint(fields, "purge_cells_per_s", 0, 1'000'000'000, options.purge_cells_per_s);
  return fleet;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenMySql(BackendOpener& opener) {
  const auto fleet = opener.OptionsAs<MySqlFleetOptions>();
  if (!fleet.ok()) return fleet.status();
  return OpenMySqlBackend(*fleet, opener.context().options.data);
}

}  // namespace

BackendType MySqlType() { return {.name = kMySql, .only_one = true, .read = ReadMySql, .open = OpenMySql}; }

}  // namespace kvstore
