#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "backends/mysql/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Two servers with 16 ID shards and 16 mod shards: 0..7 on the first, 8..15 on the second.
class TestFleet {
 public:
  static constexpr uint32_t kShards = 16;

  /// Starts the servers, which have MyRocks too. `arguments` as in MariaDbServer.
  explicit TestFleet(const std::vector<std::string>& arguments);

  MariaDbServer& server(size_t i) { return *servers_.at(i); }
  /// The server of a shard.
  MariaDbServer& OfShard(uint32_t shard) { return server(shard < kShards / 2 ? 0 : 1); }

  /// Options that suit tests: short times.
  static mysql::MySqlOptions Options();
  /// Opens a backend on it, with maps that say where the shards are.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> Open(const mysql::MySqlOptions& options = Options());
  /// The same, with the maps as they are by now.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenAsMapped(const mysql::MySqlOptions& options = Options());
  /// The same with other addresses of the two hosts, of proxies for instance.
  absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenAt(const std::string& first, const std::string& second,
                                                       const mysql::MySqlOptions& options = Options());
  /// The maps with these hosts, written to the files that all backends of this fleet watch.
  void WriteMaps(const std::string& first, const std::string& second);

  /// The file of a map: "id.json", "mod.json".
  std::filesystem::path Map(const std::string& name) const { return dir_ / name; }

  /// Removes all tables of datasets, and makes the databases if they are not there.
  void Clear();

 private:
  const TempDir dir_;
  std::array<std::unique_ptr<MariaDbServer>, 2> servers_;
};

/// Has a fleet started before the first test of this program, so that tests that fork share it with their
/// children, and stopped after the last. Called once, from an initialiser of the program.
///
/// arguments  as in MariaDbServer.
bool ShareFleet(const std::vector<std::string>& arguments = {});
TestFleet& SharedFleet();

/// Argument of a server whose MyRocks is to be slow.
inline constexpr char kLittleMemoryForMyRocks[] =
    "--rocksdb-default-cf-options=write_buffer_size=64k;max_write_buffer_number=8";
/// From now on commits to MyRocks take their time there: its memory for writes is almost full, and nothing
/// frees it. There is room for about 60 KiB more. Makes a database `pins`.
void SlowDownMyRocks(const MariaDbServer& server);

/// A dataset's store on the shared fleet, from scratch: what earlier tests made is removed.
struct Opened {
  explicit Opened(DatasetSpec spec, const mysql::MySqlOptions& options = TestFleet::Options());
  DatasetSpec spec;
  std::unique_ptr<MySqlBackend> backend;
  std::shared_ptr<RowStore> rows;
  std::shared_ptr<ObjectStore> objects;
  std::shared_ptr<MappingStore> mappings;
};

/// As the suites want it.
///
/// engine  of the datasets.
UnderTest MySql(const std::string& engine);

}  // namespace kvstore::testing
