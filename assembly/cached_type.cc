#include "assembly/cached_type.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/backend_opener.h"
#include "assembly/backend_reader.h"
#include "assembly/config_fields.h"
#include "backends/cached/backend.h"
#include "base/address.h"

namespace kvstore {
namespace {

constexpr std::string_view kOf = "of";
constexpr size_t kMaxServers = 1000;

/// Reads a list of addresses, each of which may be there once.
std::vector<std::string> ReadServers(JsonFields& fields, std::string_view name) {
  std::vector<std::string> servers;
  std::set<std::string> seen;
  for (const Json& one : fields.Array(name)) {
    if (!one.is_string() || !HostOf(one.get<std::string>())) {
      fields.Fail(name, "must be a list of addresses \"host:port\"");
      return {};
    }
    servers.push_back(one.get<std::string>());
    if (!seen.insert(servers.back()).second) fields.Fail(name, fmt::format("names {} twice", servers.back()));
  }
  if (servers.size() > kMaxServers) fields.Fail(name, fmt::format("names more than {} servers", kMaxServers));
  return servers;
}

/// Whether caches may stand in front of a backend of this type: its calls must wait for other machines, or
/// they would only be slower.
bool MayBeBehind(std::string_view type) { return type != kRocksDb && type != kCached; }

std::string WrongInner(std::string_view type) {
  return fmt::format("is of type {}; caches stand in front of a backend of type {} or {}", type, kMySql,
                     kRemote);
}

std::any ReadCached(BackendReader& reader) {
  JsonFields& fields = reader.fields();
  CacheOptions options;
  const std::filesystem::path& folder = reader.context().folder;
  OptionalObject(fields, "objects", [&](JsonFields& objects) {
    options.memcached = ReadServers(objects, "memcached");
    options.memcached_tls = ReadClientTls(objects, folder);
  });
  OptionalObject(fields, "mappings", [&](JsonFields& mappings) {
    options.redis = ReadServers(mappings, "redis");
    options.redis_login.user = mappings.OptionalString("user").value_or("");
    options.redis_login.password = ReadSecret(mappings, "password", folder);
    options.redis_tls = ReadClientTls(mappings, folder);
    if (options.redis_login.password.empty() && !options.redis_login.user.empty()) {
      mappings.Fail("password", "is missing; user has one");
    }
  });
  ReadUint(fields, "ttl_s", 1, 43'200, options.ttl_s);
  ReadUint(fields, "timeout_ms", 1, 60'000, options.timeout_ms);
  ReadUint(fields, "connections", 1, 1000, options.connections);
  ReadUint(fields, "lease_ms", 100, 600'000, options.lease_ms);
  ReadUint(fields, "quarantine_s", 1, 86'400, options.quarantine_s);
  if (uint64_t{options.lease_ms} * 2 > uint64_t{options.quarantine_s} * 1000) {
    fields.Fail("lease_ms", fmt::format("{} is more than half of quarantine_s, {}", options.lease_ms,
                                        options.quarantine_s));
  }
  if (!reader.context().coordination) {
    fields.Fail("type", "needs the field zookeeper at the top, where processes agree on the cache servers");
  }
  reader.ReadInner(kOf);
  const Json* of = fields.Find(kOf);
  if (of != nullptr && of->is_object()) {
    const auto type = of->find("type");
    if (type != of->end() && type->is_string() && !MayBeBehind(type->get<std::string>())) {
      fields.Fail(kOf, WrongInner(type->get<std::string>()));
    }
  }
  return options;
}

absl::Status CheckCached(const PlacedBackend& backend, const OpenOptions& options) {
  if (!options.coordination) {
    return absl::InvalidArgumentError(fmt::format(
        "config: {}: a backend of type {} needs zookeeper, where processes agree on the cache servers",
        backend.path, kCached));
  }
  for (const BackendConfig& of : backend.config->inner) {
    if (!MayBeBehind(of.type)) {
      return absl::InvalidArgumentError(
          fmt::format("config: {}.{}: {}", backend.path, kOf, WrongInner(of.type)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<cached::Caches>> MakeCaches(const CacheOptions& options,
                                                           const PlacedBackend& backend,
                                                           const OpenOptions& store) {
  auto caches = std::make_unique<cached::Caches>(options, store.coordination->zookeeper,
                                                 cached::ViewNode(store.coordination->root, backend.name));
  if (const auto status = caches->CheckTls(); !status.ok()) {
    return absl::Status(status.code(),
                        fmt::format("config: {}.{}", backend.path, std::string(status.message())));
  }
  return caches;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenCached(BackendOpener& opener) {
  const auto caches = opener.OptionsAs<CacheOptions>();
  if (!caches.ok()) return caches.status();
  const OpenOptions& options = opener.context().options;
  if (auto status = CheckCached(opener.backend(), options); !status.ok()) return status;
  auto of = opener.OpenInner(kOf);
  if (!of.ok()) return of.status();
  auto made = MakeCaches(*caches, opener.backend(), options);
  if (!made.ok()) return made.status();
  return std::make_unique<CachedBackend>(*std::move(of), *std::move(made));
}

}  // namespace

BackendType CachedType() { return {.name = kCached, .read = ReadCached, .open = OpenCached}; }

absl::StatusOr<std::unique_ptr<cached::Caches>> OpenCaches(const OpenOptions& options,
                                                           const std::string& name) {
  std::vector<PlacedBackend> found;
  for (PlacedBackend& backend : AllBackends(options)) {
    if (backend.config->type == kCached && (name.empty() || backend.name == name))
      found.push_back(std::move(backend));
  }
  if (found.size() != 1) {
    return absl::InvalidArgumentError(
        found.empty() && name.empty() ? fmt::format("config: backends: none is of type {}", kCached)
        : found.empty() ? fmt::format("config: backends: none of type {} has the name '{}'", kCached, name)
                        : fmt::format("config: backends: several are of type {}; name one", kCached));
  }
  if (auto status = CheckCached(found.front(), options); !status.ok()) return status;
  const auto caches = OptionsOf<CacheOptions>(found.front());
  if (!caches.ok()) return caches.status();
  return MakeCaches(*caches, found.front(), options);
}

}  // namespace kvstore
