#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/mysql/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/mysql/noted_tables.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Two servers with 16 ID shards and 16 mod shards: 0..7 on the first, 8..15 on the second.
class TestFleet {
 public:
  static constexpr uint32_t kShards = 16;

  /// Starts the servers. Those of MariaDB have MyRocks too. `arguments` as in MariaDbServer; servers with a
  /// binary log get a gtid_domain_id of their own.
  explicit TestFleet(const std::vector<std::string>& arguments);

  MariaDbServer& server(size_t i) { return *servers_.at(i); }
  /// The server of a shard.
  MariaDbServer& OfShard(uint32_t shard) { return server(shard < kShards / 2 ? 0 : 1); }

  /// Options that suit tests, with short timeouts.
  static mysql::MySqlOptions Options();
  /// Writes maps that have the servers' addresses, and opens a backend with them.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> Open(const mysql::MySqlOptions& options = Options());
  /// Where the maps are.
  mysql::MapSources Sources() const;
  /// Opens a backend with the maps as they are.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenAsMapped(const mysql::MySqlOptions& options = Options());
  /// Writes maps that have other addresses for the two hosts, of proxies for instance, and opens a backend
  /// with them.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenAt(const std::string& first, const std::string& second,
                                                       const mysql::MySqlOptions& options = Options());
  /// Writes maps that have these addresses to the files that all backends of this fleet watch.
  void WriteMaps(const std::string& first, const std::string& second);

  /// Returns the file of a map, "id.json" or "mod.json".
  std::filesystem::path Map(const std::string& name) const { return dir_ / name; }

  /// Returns another access to the fleet's records of tables that were made on first use.
  std::unique_ptr<TableRecords> Tables() const { return std::make_unique<NotedTables>(notes_); }
  /// Sets whether the records can be reached.
  void TakeTablesAway(bool away) { notes_->away = away; }

  /// Removes all tables of datasets, and makes the databases unless they are there.
  void Clear();

 private:
  const TempDir dir_;
  const std::shared_ptr<TableNotes> notes_ = std::make_shared<TableNotes>();
  std::array<std::unique_ptr<MariaDbServer>, 2> servers_;
};

/// Starts a fleet before the first test of this program, so that tests that fork share it with their
/// children, and stops it after the last. To be called once, from an initialiser of the program; the value
/// means nothing.
///
/// arguments  as in MariaDbServer.
bool ShareFleet(const std::vector<std::string>& arguments = {});
TestFleet& SharedFleet();

/// The argument of a server on which SlowDownMyRocks is to work.
inline constexpr char kLittleMemoryForMyRocks[] =
    "--rocksdb-default-cf-options=write_buffer_size=64k;max_write_buffer_number=8";
/// Makes commits to MyRocks slow on a server from now on: its memory for writes is almost full, and nothing
/// frees it. There is room for about 60 KiB more. Makes a database `pins`.
void SlowDownMyRocks(const MariaDbServer& server);

/// A new dataset on the shared fleet, and its store. Removes what earlier tests made.
struct Opened {
  explicit Opened(DatasetSpec spec, const mysql::MySqlOptions& options = TestFleet::Options());
  DatasetSpec spec;
  std::unique_ptr<MySqlBackend> backend;
  std::shared_ptr<RowStore> rows;
  std::shared_ptr<ObjectStore> objects;
  std::shared_ptr<MappingStore> mappings;
};

/// Returns the backend for the suites.
///
/// engine  the engine of the datasets.
UnderTest MySql(const std::string& engine);
/// Returns the same with InnoDB, and tables that are made on first use.
UnderTest MySqlOnFirstUse();
/// Returns the storage engines that the servers of tests have: MySQL has no MyRocks.
std::vector<std::string> StorageEngines();
/// Returns the backend for the suites, with each of these engines.
std::vector<UnderTest> OnEachEngine();

/// Returns how many tables of that name there are in the shards of the shared fleet.
int CountTables(const std::string& name);
/// Returns, for the FROM of a statement, a table whose column `seq` has the numbers first..last.
std::string Numbers(uint64_t first, uint64_t last);
/// Returns the sum of these counters of SHOW GLOBAL STATUS.
///
/// names  "'Com_stmt_execute', 'Com_select'"
uint64_t SumOfStatus(const MariaDbServer& server, const std::string& names);

}  // namespace kvstore::testing
