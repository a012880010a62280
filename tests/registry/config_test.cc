#include "registry/config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::TempDir;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<OpenOptions> Parse(const std::string& text) { return ParseConfig(text, "/etc/kv"); }

/// A configuration whose `mysql` has these further fields.
std::string WithMySql(const std::string& fields) {
  return R"({"data": "store", "mysql": {"user": "kv", "zookeeper": "zk1:2181", )" + fields + "}}";
}

TEST(Config, TheLeastIsADirectory) {
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, Parse(R"({"data": "store"})"));
  EXPECT_EQ(options.data, "/etc/kv/store");
  EXPECT_EQ(options.default_backend, "rocksdb");
  EXPECT_FALSE(options.mysql);
  EXPECT_EQ(Parse(R"({"data": "/var/lib/kv"})")->data, "/var/lib/kv");
}

TEST(Config, EveryFieldArrives) {
  const TempDir dir;
  std::ofstream(dir / "secret") << "p w\n";
  ASSERT_OK_AND_ASSIGN(const OpenOptions options, ParseConfig(R"({
      "data": "store", "cache_bytes": 1000, "default_backend": "mysql",
      "mysql": {
        "user": "kv", "password_file": "secret", "id_map": "id.json", "mod_map": "/maps/mod.json",
        "tls": {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"},
        "pool": {"max_connections": 1, "min_connections": 2, "wait_ms": 3, "lifetime_s": 4, "idle_s": 5,
                 "check_after_ms": 6, "connect_timeout_s": 7, "read_timeout_s": 8, "write_timeout_s": 9, "lock_wait_s": 2,
                 "statements": 11},
        "breaker": {"failures": 12, "min_pause_ms": 13, "max_pause_ms": 14},
        "weights": [{"first": 1, "last": 2, "weight": 0}],
        "purge_cells_per_s": 15}})",
                                                              dir.path()));
  EXPECT_EQ(options.cache_bytes, 1000u);
  EXPECT_EQ(options.default_backend, "mysql");
  const MySqlFleet& fleet = *options.mysql;
  EXPECT_EQ(fleet.options.password, "p w");
  EXPECT_EQ(fleet.id_map, dir / "id.json");
  EXPECT_EQ(fleet.mod_map, "/maps/mod.json");
  EXPECT_TRUE(fleet.options.tls.required);
  EXPECT_EQ(fleet.options.tls.key, dir / "key.pem");
  const mysql::PoolOptions& pool = fleet.options.pool;
  EXPECT_EQ(pool.max_connections, 1u);
  EXPECT_EQ(pool.min_connections, 2u);
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
  ASSERT_OK_AND_ASSIGN(const OpenOptions options,
                       Parse(WithMySql(R"("root": "/fleet", "zookeeper_auth": "op:pw")")));
  EXPECT_EQ(options.mysql->zookeeper.servers, "zk1:2181");
  EXPECT_EQ(options.mysql->zookeeper.auth, "op:pw");
  EXPECT_EQ(options.mysql->root, "/fleet");
}

TEST(Config, MistakesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"", "config: "},
      {"[]", "must be a JSON object"},
      {"{}", "data"},
      {R"({"data": "d", "dir": 1})", "dir"},
      {R"({"data": "d", "default_backend": "mysql"})", "default_backend: 'mysql'"},
      {R"({"data": "d", "mysql": []})", "mysql: must be an object"},
      {R"({"data": "d", "mysql": {"user": "kv"}})", "zookeeper: is missing"},
      {R"({"data": "d", "mysql": {"user": "kv", "id_map": "a"}})", "zookeeper: is missing"},
      {WithMySql(R"("id_map": "a")"), "id_map: not together with zookeeper"},
      {WithMySql(R"("password_file": "nowhere")"), "mysql.password_file: cannot read /etc/kv/nowhere"},
      {WithMySql(R"("pool": {"max_connections": 0})"), "mysql.pool.max_connections"},
      {WithMySql(R"("pool": {"lock_wait_s": 15})"), "lock_wait_s: 15 is not below read_timeout_s, 15"},
      {WithMySql(R"("pool": {"size": 1})"), "mysql.pool.size"},
      {WithMySql(R"("weights": [{"first": 5, "last": 4, "weight": 1}])"), "weights[0].last: is below first"},
      {WithMySql(R"("weights": [{"first": 5, "last": 65536, "weight": 1}])"), "weights[0].last"},
  };
  for (const auto& [text, message] : mistakes) EXPECT_THAT(Parse(text), FailsWith(kInvalid, message)) << text;
  EXPECT_THAT(ReadConfig("/nowhere/kv.json"), FailsWith(absl::StatusCode::kNotFound, "/nowhere/kv.json"));
}

}  // namespace
}  // namespace kvstore
