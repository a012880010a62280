#pragma once

#include <cppconn/connection.h>
#include <cppconn/prepared_statement.h>
#include <cppconn/resultset.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/backend.h"
#include "backends/mysql/statements.h"
#include "bench/folder.h"
#include "bench/report.h"
#include "kvstore_api/router.h"
#include "registry/open.h"

namespace kvstore::bench {

/// What the workloads on MySQL servers have in common.
struct MySqlBenchOptions {
  MySqlFleet fleet;  ///< Servers with at least one shard of each space; see ./dev up.
  int rounds = 9;
  double seconds = 0.4;            ///< Of each side of a path in a round.
  bool compare = true;             ///< Also by the connector alone.
  std::vector<std::string> paths;  ///< Only these; empty: all.
};

/// A store on the servers of a configuration, with datasets of the benchmark's own, dropped again at the end.
class MySqlFixture {
 public:
  static absl::StatusOr<std::unique_ptr<MySqlFixture>> Open(const MySqlBenchOptions& options);
  ~MySqlFixture();
  MySqlFixture(const MySqlFixture&) = delete;
  MySqlFixture& operator=(const MySqlFixture&) = delete;

  /// Creates a dataset, "kv_bench_NAME"; returns that name.
  std::string Create(const std::string& name, Shape shape, uint32_t max_versions = 1);
  /// Drops it.
  void Drop(const std::string& dataset);

  KVStore& store() { return *store_; }
  mysql::Fleet& fleet() { return *fleet_; }
  /// The shards of the first host of a space.
  std::vector<uint32_t> ShardsOfFirstHost(mysql::Space space);
  Host FirstHost(mysql::Space space) { return fleet_->map(space).ranges()[0].master; }
  const MySqlFleet& options() const { return options_; }

 private:
  MySqlFixture(const MySqlFleet& options, Folder folder) : options_(options), folder_(std::move(folder)) {}

  const MySqlFleet options_;
  const Folder folder_;
  std::vector<std::string> created_;
  std::unique_ptr<KVStore> store_;
  mysql::Fleet* fleet_ = nullptr;  // of store_
};

/// The other side of comparisons: a connection as a program without this project would have it, and the same
/// statements on it, prepared beforehand.
class RawConnection {
 public:
  RawConnection(const Host& host, const MySqlFleet& options);

  /// Both are this one's.
  sql::PreparedStatement& Prepare(const std::string& text);
  /// The statement on a dataset's table.
  sql::PreparedStatement& Prepare(mysql::Sql sql, mysql::Space space, const std::string& dataset,
                                  uint32_t shard, size_t count = 1);
  void Run(const std::string& text);
  /// A figure that the server answers with.
  uint64_t Ask(const std::string& text);

 private:
  std::unique_ptr<sql::Connection> connection_;
  std::unique_ptr<sql::Statement> plain_;
  std::vector<std::unique_ptr<sql::PreparedStatement>> statements_;
};

/// One for each thread.
std::vector<std::unique_ptr<RawConnection>> RawConnections(MySqlFixture& fixture, mysql::Space space,
                                                           size_t count);

/// Runs `path` and adds its result, if it is wanted.
void Measure(Report& report, const MySqlBenchOptions& options, const std::string& path, uint64_t threads,
             const Work& ours, const Work& raw);

Report NewReport(const std::string& workload, const MySqlBenchOptions& options);

/// Objects: reads and creates on one host, batches over all of them.
absl::StatusOr<Report> BenchObjects(const MySqlBenchOptions& options);
/// Mappings: pages of a board of 100,000 pins.
absl::StatusOr<Report> BenchMappings(const MySqlBenchOptions& options);
/// Rows: versions, puts, whole rows.
absl::StatusOr<Report> BenchMySqlRows(const MySqlBenchOptions& options);
/// LinkBench's mix of operations on objects (nodes) and mappings (links), by Zipf.
/// Source: Armstrong et al., "LinkBench: a database benchmark based on the Facebook social graph", 2013.
absl::StatusOr<Report> BenchLinks(const MySqlBenchOptions& options);

}  // namespace kvstore::bench
