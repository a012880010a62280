#include "assembly/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <cstdlib>
#include <fstream>

#include "assembly/backend_config.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::TempDir;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<OpenOptions> Parse(const std::string& text) {
  auto config = ParseConfig(text, "/etc/kv");
  if (!config.ok()) return config.status();
  return config->store;
}

/// A configuration whose `mysql` has these further fields.
std::string WithMySql(const std::string& fields) {
  return R"({"data": "store", "mysql": {"user": "kv", "zookeeper": "zk1:2181", )" + fields + "}}";
}

TEST(Config, TheLeastIsADirectory) {
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(R"({"data": "store"})"));
  EXPECT_EQ(options.data, "/etc/kv/store");
  EXPECT_EQ(options.default_backend, "rocksdb");
  ASSERT_EQ(options.backends.size(), 1u);
  EXPECT_EQ(options.backends[0].name, "rocksdb");
  EXPECT_EQ(options.backends[0].type, "rocksdb");
  EXPECT_EQ(FindFleet(options), nullptr);
  EXPECT_EQ(Parse(R"({"data": "/var/lib/kv"})")->data, "/var/lib/kv");
}

TEST(Config, FilesForTlsAreOfNoUseWithoutIt) {
  EXPECT_OK(Parse(WithMySql(R"("tls": {"required": false})")).status());
  EXPECT_OK(Parse(WithMySql(R"("tls": {"ca": "ca.pem"})")).status());
  EXPECT_THAT(Parse(WithMySql(R"("tls": {"required": false, "ca": "ca.pem"})")).status(),
              FailsWith(kInvalid, "mysql.tls.required: is false"));
}

TEST(Config, BackupsHaveAPlaceAndATime) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(R"({
      "data": "store",
      "backup": {"to": "s3://bucket/events", "every": "1h30m", "keep": 7, "endpoint": "https://s3.example",
                 "region": "eu-1", "credentials_file": "keys", "bytes_per_s": 20000000}})",
                                                        "/etc/kv"));
  ASSERT_TRUE(config.backup);
  EXPECT_EQ(config.backup->bytes_per_s, 20'000'000u);
  EXPECT_EQ(config.backup->to, "s3://bucket/events");
  EXPECT_EQ(config.backup->every_ms, 5'400'000u);
  EXPECT_EQ(config.backup->keep, 7u);
  EXPECT_EQ(config.backup->s3.endpoint, "https://s3.example");
  EXPECT_EQ(config.backup->s3.region, "eu-1");
  EXPECT_EQ(config.backup->s3.credentials_file, "/etc/kv/keys");
  const auto parse = [](const std::string& fields) {
    return ParseConfig(R"({"data": "store", "backup": {)" + fields + "}}", "/etc/kv");
  };
  ASSERT_OK_AND_ASSIGN(const Config least, parse(R"("to": "file:backups")"));
  EXPECT_EQ(least.backup->to, "file:/etc/kv/backups");
  EXPECT_EQ(least.backup->every_ms, 0u);
  EXPECT_EQ(least.backup->keep, 0u);
  EXPECT_EQ(least.backup->bytes_per_s, 0u);
  EXPECT_EQ(parse(R"("to": "file:/mnt/b")")->backup->to, "file:/mnt/b");
  EXPECT_FALSE(ParseConfig(R"({"data": "store"})", "/etc/kv")->backup);
  EXPECT_THAT(parse(R"("every": "6h")"), FailsWith(kInvalid, "backup.to: "));
  EXPECT_THAT(parse(R"("to": "/mnt/b")"), FailsWith(kInvalid, "backup.to: must be file:DIR"));
  EXPECT_THAT(parse(R"("to": "file:b", "keep": 0)"), FailsWith(kInvalid, "backup.keep: "));
  EXPECT_THAT(parse(R"("to": "file:b", "bytes_per_s": 1)"), FailsWith(kInvalid, "backup.bytes_per_s: "));
  for (const char* every : {"6", "1s", "-1h", "", "daily", "9000h"}) {
    EXPECT_THAT(parse(std::string(R"("to": "file:b", "every": ")") + every + "\""),
                FailsWith(kInvalid, "backup.every: must be a duration"))
        << every;
  }
}

TEST(Config, ADefaultGivesWayToWhatIsGiven) {
  ASSERT_OK_AND_ASSIGN(
      const OpenOptions options,
      Parse(WithMySql(R"("pool": {"min_connections": 20}, "breaker": {"max_pause_ms": 100})")));
  ASSERT_NE(FindFleet(options), nullptr);
  EXPECT_EQ(FindFleet(options)->options.pool.max_connections, 20u);
  EXPECT_EQ(FindFleet(options)->options.breaker.min_pause_ms, 100u);
}

TEST(Config, EveryFieldArrives) {
  const TempDir dir;
  std::ofstream(dir / "secret") << "p w\n";
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(R"({
      "data": "store", "cache_bytes": 1000, "cache_answers": false, "wal_bytes": 2000000, "default_backend": "mysql",
      "mysql": {
        "user": "kv", "password_file": "secret", "id_map": "id.json", "mod_map": "/maps/mod.json",
        "tls": {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"},
        "pool": {"max_connections": 2, "min_connections": 1, "max_total": 16, "wait_ms": 3, "lifetime_s": 4, "idle_s": 5,
                 "check_after_ms": 6, "connect_timeout_s": 7, "read_timeout_s": 8, "write_timeout_s": 9, "lock_wait_s": 2,
                 "statements": 11},
        "breaker": {"failures": 12, "min_pause_ms": 13, "max_pause_ms": 14},
        "weights": [{"first": 1, "last": 2, "weight": 0}],
        "purge_cells_per_s": 15}})",
                                                        dir.path()));
  const OpenOptions& options = config.store;
  EXPECT_EQ(options.default_backend, "mysql");
  ASSERT_EQ(options.backends.size(), 2u);
  const auto& rocksdb = std::any_cast<const RocksDbOptions&>(options.backends[0].options);
  EXPECT_EQ(rocksdb.cache_bytes, 1000u);
  EXPECT_FALSE(rocksdb.cache_answers);
  EXPECT_EQ(rocksdb.wal_bytes, 2'000'000u);
  ASSERT_NE(FindFleet(options), nullptr);
  const MySqlFleetOptions& fleet = *FindFleet(options);
  EXPECT_EQ(fleet.options.password, "p w");
  EXPECT_EQ(fleet.id_map, dir / "id.json");
  EXPECT_EQ(fleet.mod_map, "/maps/mod.json");
  EXPECT_TRUE(fleet.options.tls.required);
  EXPECT_EQ(fleet.options.tls.key, dir / "key.pem");
  const mysql::PoolOptions& pool = fleet.options.pool;
  EXPECT_EQ(pool.max_connections, 2u);
  EXPECT_EQ(pool.min_connections, 1u);
  EXPECT_EQ(pool.max_total, 16u);
  EXPECT_EQ(pool.wait_ms, 3u);
  EXPECT_EQ(pool.lifetime_s, 4u);
  EXPECT_EQ(pool.idle_s, 5u);
  EXPECT_EQ(pool.check_after_ms, 6u);
  EXPECT_EQ(pool.connect_timeout_s, 7u);
  EXPECT_EQ(pool.read_timeout_s, 8u);
  EXPECT_EQ(pool.write_timeout_s, 9u);
  EXPECT_EQ(pool.lock_wait_s, 2u);
  EXPECT_EQ(pool.statements, 11u);
  EXPECT_EQ(fleet.options.breaker.failures, 12u);
  EXPECT_EQ(fleet.options.breaker.min_pause_ms, 13u);
  EXPECT_EQ(fleet.options.breaker.max_pause_ms, 14u);
  ASSERT_EQ(fleet.options.weights.size(), 1u);
  EXPECT_EQ(fleet.options.weights[0].last, 2u);
  EXPECT_EQ(fleet.options.purge_cells_per_s, 15u);
}

TEST(Config, ZooKeeperIsOneWayToTheMaps) {
  ASSERT_OK_AND_ASSIGN(
      const OpenOptions options,
      Parse(WithMySql(R"("root": "/fleet", "zookeeper_auth": "op:pw", "tables_on_first_use": true)")));
  const MySqlFleetOptions& fleet = *FindFleet(options);
  EXPECT_EQ(fleet.zookeeper.servers, "zk1:2181");
  EXPECT_TRUE(fleet.options.tables_on_first_use);
  EXPECT_EQ(fleet.zookeeper.auth, "op:pw");
  EXPECT_EQ(fleet.root, "/fleet");
}

TEST(Config, MistakesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"", "config: "},
      {"[]", "must be a JSON object"},
      {"{}", "data"},
      {R"({"data": "d", "dir": 1})", "dir"},
      {R"({"data": "d", "default_backend": "mysql"})", "default_backend: 'mysql'"},
      {R"({"data": "d", "wal_bytes": 1000})", "wal_bytes"},
      {R"({"data": "d", "mysql": []})", "mysql: must be an object"},
      {R"({"data": "d", "mysql": {"user": "kv"}})", "zookeeper: is missing"},
      {R"({"data": "d", "mysql": {"user": "kv", "id_map": "a"}})", "zookeeper: is missing"},
      {R"({"data": "d", "mysql": {"user": "kv", "id_map": "a", "mod_map": "b", "tables_on_first_use": true}})",
       "tables_on_first_use: needs the shard maps in ZooKeeper"},
      {WithMySql(R"("id_map": "a")"), "id_map: names a file, but zookeeper is given, too"},
      {WithMySql(R"("password_file": "nowhere")"), "mysql.password_file: cannot read /etc/kv/nowhere"},
      {WithMySql(R"("pool": {"max_connections": 0})"), "mysql.pool.max_connections"},
      {WithMySql(R"("pool": {"max_connections": 4, "min_connections": 5})"),
       "mysql.pool.min_connections: 5 is above max_connections, 4"},
      {WithMySql(R"("breaker": {"min_pause_ms": 30, "max_pause_ms": 20})"),
       "mysql.breaker.min_pause_ms: 30 is above max_pause_ms, 20"},
      {WithMySql(R"("pool": {"max_total": 0})"), "mysql.pool.max_total"},
      {WithMySql(R"("pool": {"lock_wait_s": 15})"), "lock_wait_s: 15 is not below read_timeout_s, 15"},
      {WithMySql(R"("pool": {"size": 1})"), "mysql.pool.size"},
      {WithMySql(R"("weights": [{"first": 5, "last": 4, "weight": 1}])"), "weights[0].last: is below first"},
      {WithMySql(R"("weights": [{"first": 5, "last": 65536, "weight": 1}])"), "weights[0].last"},
      {WithMySql(R"("weights": [{"weight": 0}])"), "weights[0].first: missing"},
      {WithMySql(R"("weights": [{"first": 5, "weight": 0}])"), "weights[0].last: missing"},
      {WithMySql(R"("root": "kvstore")"), "mysql.root: 'kvstore' is not the path of a node of ZooKeeper"},
      {WithMySql(R"("root": "/kvstore/")"), "mysql.root: '/kvstore/' is not the path"},
      {WithMySql(R"("root": "/kv//store")"), "mysql.root: '/kv//store' is not the path"},
      {R"({"data": "d", "zookeeper": {"servers": "z:1", "root": "kvstore"}})",
       "zookeeper.root: 'kvstore' is not the path of a node of ZooKeeper"},
  };
  for (const auto& [text, message] : mistakes) EXPECT_THAT(Parse(text), FailsWith(kInvalid, message)) << text;
  EXPECT_THAT(ReadConfig("/nowhere/kv.json"), FailsWith(absl::StatusCode::kNotFound, "/nowhere/kv.json"));
}

TEST(Config, BackendsHaveNames) {
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(R"({
      "data": "store", "zookeeper": {"servers": "zk1:2181", "root": "/pins", "auth": "op:pw"},
      "default_backend": "fleet",
      "backends": {
        "east": {"type": "rocksdb", "cache_bytes": 5},
        "fleet": {"type": "mysql", "user": "kv"},
        "west": {"type": "remote", "address": "west:7400", "token": "secret", "connections": 3, "deadline_ms": 4,
                 "tls": {"ca": "ca.pem", "server_name": "w"}},
        "south": {"type": "remote", "address": "unix:/run/kv"}}})"));
  ASSERT_EQ(options.backends.size(), 4u);
  const BackendConfig& east = options.backends[0];
  EXPECT_EQ(east.name, "east");
  EXPECT_EQ(east.type, "rocksdb");
  EXPECT_EQ(std::any_cast<const RocksDbOptions&>(east.options).cache_bytes, 5u);
  EXPECT_EQ(FindBackendOfType(options, kMySql)->name, "fleet");
  // The maps are where the catalog is, unless the backend says otherwise.
  EXPECT_EQ(FindFleet(options)->zookeeper.servers, "zk1:2181");
  EXPECT_EQ(FindFleet(options)->root, "/pins");
  EXPECT_EQ(options.coordination->zookeeper.auth, "op:pw");
  EXPECT_EQ(options.backends[2].name, "south");
  EXPECT_EQ(options.backends[3].name, "west");
  const auto& west = std::any_cast<const RemoteServer&>(options.backends[3].options);
  EXPECT_EQ(west.address, "west:7400");
  EXPECT_EQ(west.options.token, "secret");
  EXPECT_EQ(west.options.connections, 3u);
  EXPECT_EQ(west.options.tls->ca, "/etc/kv/ca.pem");
  EXPECT_EQ(west.options.tls->server_name, "w");
}

TEST(Config, CachesStandInFrontOfABackend) {
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(R"({
      "data": "store", "zookeeper": {"servers": "zk1:2181"},
      "backends": {
        "fleet": {"type": "cached", "of": {"type": "mysql", "user": "kv"}, "objects": {"memcached": ["a:1", "b:2"]},
                  "mappings": {"redis": ["[::1]:3"], "user": "kv", "password": "pw"}, "ttl_s": 4, "timeout_ms": 5,
                  "connections": 6, "lease_ms": 700, "quarantine_s": 8}}})"));
  ASSERT_EQ(options.backends.size(), 1u);
  const auto& caches = std::any_cast<const CacheOptions&>(options.backends[0].options);
  EXPECT_EQ(caches.memcached, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(caches.redis, (std::vector<std::string>{"[::1]:3"}));
  EXPECT_EQ(caches.redis_login.user, "kv");
  EXPECT_EQ(caches.redis_login.password, "pw");
  EXPECT_EQ(caches.ttl_s, 4u);
  EXPECT_EQ(caches.timeout_ms, 5u);
  EXPECT_EQ(caches.connections, 6u);
  EXPECT_EQ(caches.lease_ms, 700u);
  EXPECT_EQ(caches.quarantine_s, 8u);
  EXPECT_EQ(FindBackendOfType(options, kMySql)->name, "fleet");
  EXPECT_FALSE(caches.memcached_tls || caches.redis_tls);
}

TEST(Config, CachesMayBeEncrypted) {
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(R"({
      "data": "store", "zookeeper": {"servers": "zk1:2181"},
      "backends": {
        "fleet": {"type": "cached", "of": {"type": "mysql", "user": "kv"},
                  "objects": {"memcached": ["a:1"], "tls": {"ca": "ca.pem"}},
                  "mappings": {"redis": ["b:2"], "tls": {"cert": "c.pem", "key": "c.key", "server_name": "r"}}}}})"));
  const auto& caches = std::any_cast<const CacheOptions&>(options.backends[0].options);
  ASSERT_TRUE(caches.memcached_tls && caches.redis_tls);
  EXPECT_EQ(caches.memcached_tls->ca, "/etc/kv/ca.pem");
  EXPECT_EQ(caches.redis_tls->ca, "");
  EXPECT_EQ(caches.redis_tls->cert, "/etc/kv/c.pem");
  EXPECT_EQ(caches.redis_tls->key, "/etc/kv/c.key");
  EXPECT_EQ(caches.redis_tls->server_name, "r");
}

TEST(Config, CachesThatCannotBeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {R"({"data": "s", "backends": {"a": {"type": "cached", "of": {"type": "mysql", "user": "kv"}}}})",
       "backends.a.type: needs the field zookeeper"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached"}}})",
       "backends.a.of: missing"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached",
           "of": {"type": "mysql", "user": "kv"}, "objects": {"memcached": ["a"]}}}})",
       "backends.a.objects.memcached: must be a list of addresses"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached",
           "of": {"type": "mysql", "user": "kv"}, "objects": {"memcached": ["a:1", "a:1"]}}}})",
       "backends.a.objects.memcached: names a:1 twice"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached",
           "of": {"type": "mysql", "user": "kv"}, "mappings": {"redis": ["a:1"], "user": "kv"}}}})",
       "backends.a.mappings.password: is missing"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached",
           "of": {"type": "mysql", "user": "kv"}, "mappings": {"redis": ["a:1"], "tls": {"cert": "c"}}}}})",
       "backends.a.mappings.tls.key: is missing"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached",
           "of": {"type": "mysql", "user": "kv"}, "lease_ms": 600, "quarantine_s": 1}}})",
       "backends.a.lease_ms: 600 is more than half of quarantine_s, 1"},
      {R"({"data": "s", "zookeeper": {"servers": "z:1"}, "backends": {"a": {"type": "cached", "of": {"type": "rocksdb"}}}})",
       "backends.a.of: is of type rocksdb; caches stand in front of a backend of type mysql or remote"},
  };
  for (const auto& [text, message] : mistakes) EXPECT_THAT(Parse(text), FailsWith(kInvalid, message)) << text;
}

TEST(Config, AServerIsDescribedToo) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(R"({
      "data": "store",
      "server": {"listen": ["0.0.0.0:1", "unix:/run/kv"], "http": "127.0.0.1:2", "http_open": true, "tokens": "tokens.json",
                 "resp": "127.0.0.1:3", "http_api": "127.0.0.1:3", "http_origins": ["https://app.example", "*"],
                 "insecure": true, "slow_ms": 3, "tls": {"cert": "c.pem", "key": "k.pem", "client_ca": "/ca.pem"},
                 "limits": {"max_calls": 4, "max_bytes": 50000000, "threads": 6, "report_threads": 12, "query_bytes": 1048577,
                            "call_ms": 7, "stall_ms": 800, "idle_ms": 15, "drain_ms": 9, "remembered": 10, "remember_ms": 11},
                 "reports": {"dataset": "stats", "maintain_ms": 12, "share": 13, "quiet_ms": 14}}})",
                                                        "/etc/kv"));
  const ServerOptions& server = config.server;
  EXPECT_EQ(server.listen, (std::vector<std::string>{"0.0.0.0:1", "unix:/run/kv"}));
  EXPECT_EQ(server.http, "127.0.0.1:2");
  EXPECT_TRUE(server.http_open);
  EXPECT_EQ(server.resp, "127.0.0.1:3");
  EXPECT_EQ(server.http_api, "127.0.0.1:3");
  EXPECT_EQ(server.http_origins, (std::vector<std::string>{"https://app.example", "*"}));
  EXPECT_TRUE(server.insecure);
  EXPECT_EQ(server.tokens, "/etc/kv/tokens.json");
  EXPECT_EQ(server.tls.cert, "/etc/kv/c.pem");
  EXPECT_EQ(server.tls.client_ca, "/ca.pem");
  EXPECT_EQ(server.slow_ms, 3u);
  EXPECT_EQ(server.limits.max_calls, 4u);
  EXPECT_EQ(server.limits.max_bytes, 50'000'000u);
  EXPECT_EQ(server.limits.threads, 6u);
  EXPECT_EQ(server.limits.report_threads, 12u);
  EXPECT_EQ(server.limits.query_bytes, 1'048'577u);
  EXPECT_EQ(server.limits.call_ms, 7u);
  EXPECT_EQ(server.limits.stall_ms, 800u);
  EXPECT_EQ(server.limits.idle_ms, 15u);
  EXPECT_EQ(server.limits.drain_ms, 9u);
  EXPECT_EQ(server.limits.remembered, 10u);
  EXPECT_EQ(server.limits.remember_ms, 11u);
  EXPECT_EQ(server.reports.dataset, "stats");
  EXPECT_EQ(server.reports.maintain_ms, 12u);
  EXPECT_EQ(server.reports.share, 13u);
  EXPECT_EQ(server.reports.quiet_ms, 14u);
}

TEST(Config, EveryMistakeIsListedWithItsPath) {
  const absl::Status status = Parse(R"({
      "cache_bytes": -1, "colour": "red", "zookeeper": {"root": 7},
      "backends": {"a": {"type": "rocksdb"}, "b": {"type": "rocksdb"}, "c": {"type": "mongodb"},
                   "d": {"type": "remote", "tls": {"cipher": 1}}, "e": {"type": "mysql", "pool": {"wait_ms": "x"}}},
      "server": {"listen": [], "http_origins": [7], "limits": {"threads": 0}, "tls": {"cert": "c"}, "reports": {"share": 0}}})")
                                  .status();
  const std::string text(status.message());
  for (const char* mistake :
       {"config: data: missing", "config: cache_bytes: must be a whole number",
        "config: colour: unknown field", "config: zookeeper.servers: missing",
        "config: zookeeper.root: must be a string",
        "config: backends.b.type: there can be only one backend of type rocksdb",
        "config: backends.c.type: 'mongodb' is not a type of backend; the types are rocksdb, mysql, remote, "
        "cached",
        "config: backends.d.address: missing", "config: backends.d.tls.cipher: unknown field",
        "config: backends.e.user: missing", "config: backends.e.zookeeper: is missing",
        "config: backends.e.pool.wait_ms: must be a whole number", "config: default_backend: is missing",
        "config: server.listen: must name an address", "config: server.http_origins[0]: must be a string",
        "config: server.limits.threads: must be a whole number from 1 to 1000",
        "config: server.tls.key: missing",
        "config: server.reports.share: must be a whole number from 1 to 100"}) {
    EXPECT_NE(text.find(mistake), std::string::npos) << mistake << " is not in\n" << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17) << text;
}

TEST(Config, SecretsMayComeFromTheEnvironment) {
  ::setenv("KV_TEST_SECRET", "from outside", 1);
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(WithMySql(R"("password_env": "KV_TEST_SECRET")")));
  EXPECT_EQ(FindFleet(options)->options.password, "from outside");
  EXPECT_THAT(Parse(WithMySql(R"("password_env": "KV_TEST_NO_SECRET")")),
              FailsWith(kInvalid, "mysql.password_env: KV_TEST_NO_SECRET is not set"));
}

}  // namespace
}  // namespace kvstore
