#pragma once

#include <cppconn/connection.h>
#include <cppconn/prepared_statement.h>
#include <cppconn/resultset.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cached/backend.h"
#include "backends/mysql/backend.h"
#include "backends/mysql/driver/statements.h"
#include "bench/harness/folder.h"
#include "bench/harness/report.h"
#include "kvstore_api/open.h"
#include "router/router.h"

namespace kvstore::bench {

/// Caches in front of the MySQL servers.
struct BenchCaches {
  CacheOptions options;
  Coordination coordination;
};

/// Options that the workloads on MySQL servers share.
struct MySqlBenchOptions {
  MySqlFleetOptions fleet;                 ///< Servers with at least one shard of each space; see ./dev up.
  std::optional<BenchCaches> caches = {};  ///< Reads and writes go through these; see ./dev up --caches.
  int rounds = 9;
  double seconds = 0.4;            ///< How long each side of a path runs in a round.
  bool compare = true;             ///< Also measure the connector alone.
  std::vector<std::string> paths;  ///< Only these; empty: all.
};

/// A store on the servers of a configuration, with datasets of the benchmark's own, which are dropped at the
/// end.
class MySqlFixture {
 public:
  static absl::StatusOr<std::unique_ptr<MySqlFixture>> Open(const MySqlBenchOptions& options);
  ~MySqlFixture();
  MySqlFixture(const MySqlFixture&) = delete;
  MySqlFixture& operator=(const MySqlFixture&) = delete;

  /// Creates a dataset, "kv_bench_NAME"; returns that name.
  std::string Create(const std::string& name, Shape shape, uint32_t max_versions = 1);
  /// Drops a dataset.
  void Drop(std::string dataset);

  KVStore& store() { return *store_; }
  mysql::Fleet& fleet() { return *fleet_; }
  /// Returns the shards of the first host of a space.
  std::vector<uint32_t> ShardsOfFirstHost(ShardSpace space);
  Host FirstHost(ShardSpace space) { return fleet_->map(space).ranges()[0].master; }
  const MySqlFleetOptions& options() const { return options_; }
  /// Whether there are caches in front of the servers.
  bool cached() const { return caches_ != nullptr; }
  /// Adds what the caches have done, if there are any.
  void AddCacheFigures(Report& report) const;

 private:
  MySqlFixture(const MySqlFleetOptions& options, Folder folder)
      : options_(options), folder_(std::move(folder)) {}
  /// Puts caches in front of a backend, and waits until they are trusted.
  absl::StatusOr<std::unique_ptr<Backend>> Cached(std::unique_ptr<Backend> of, const BenchCaches& caches);

  const MySqlFleetOptions options_;
  const Folder folder_;
  std::vector<std::string> created_;
  std::unique_ptr<KVStore> store_;
  mysql::Fleet* fleet_ = nullptr;     // of store_
  cached::Caches* caches_ = nullptr;  // of store_
  std::function<void()> forget_caches_;
};

/// The raw side of comparisons: a connection as a program without this project would open it, and the same
/// statements on it, prepared beforehand.
class RawConnection {
 public:
  RawConnection(const Host& host, const MySqlFleetOptions& options);

  /// Prepares a statement, which belongs to the RawConnection.
  sql::PreparedStatement& Prepare(const std::string& text);
  /// Prepares one of our statements on a dataset's table.
  sql::PreparedStatement& Prepare(mysql::Sql sql, ShardSpace space, const std::string& dataset,
                                  uint32_t shard, size_t count = 1);
  void Run(const std::string& text);
  /// Returns a number that the server answers with.
  uint64_t Ask(const std::string& text);

 private:
  std::unique_ptr<sql::Connection> connection_;
  std::unique_ptr<sql::Statement> plain_;
  std::vector<std::unique_ptr<sql::PreparedStatement>> statements_;
};

/// Opens `count` connections, one for each thread.
std::vector<std::unique_ptr<RawConnection>> RawConnections(MySqlFixture& fixture, ShardSpace space,
                                                           size_t count);

/// Runs `path` and adds its result, if the options ask for it.
void Measure(Report& report, const MySqlBenchOptions& options, const std::string& path, uint64_t threads,
             const Work& ours, const Work& raw);

Report NewReport(const std::string& workload, const MySqlBenchOptions& options);

/// Measures objects: reads and creates on one host, batches over all hosts.
absl::StatusOr<Report> BenchObjects(const MySqlBenchOptions& options);
/// Measures mappings: pages of a board of 100,000 pins.
absl::StatusOr<Report> BenchMappings(const MySqlBenchOptions& options);
/// Measures rows: versions, puts, whole rows.
absl::StatusOr<Report> BenchMySqlRows(const MySqlBenchOptions& options);
/// Measures LinkBench's mix of operations on objects (nodes) and mappings (links), chosen by Zipf.
/// Source: Armstrong et al., "LinkBench: a database benchmark based on the Facebook social graph", 2013.
absl::StatusOr<Report> BenchLinks(const MySqlBenchOptions& options);

}  // namespace kvstore::bench
