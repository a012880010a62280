#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend_api/unit.h"
#include "fleet_backup/binlog_shipper.h"
#include "fleet_backup/pair_backups.h"
#include "router/router.h"
#include "tests/shardops/pair.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A fleet of one pair whose catalog is in ZooKeeper, with datasets of all shapes on it, an operator's
/// configuration, and a folder for its backups.
class BackedUpFleet {
 public:
  BackedUpFleet();

  PairFleet& pair() { return pair_; }
  Router& store() { return *store_; }
  const std::filesystem::path& folder() const { return dir_.path(); }
  std::filesystem::path config() const { return dir_ / "kv.json"; }
  std::string url() const { return "file:" + (dir_ / "backups").string(); }
  /// The folder in which the blobs of the pair's backups are.
  std::filesystem::path blobs() const { return dir_ / "backups/pairs/1"; }
  fleet_backup::BlobOpener opener() const;
  std::unique_ptr<BlobStore> OpenBlobs() const;

  /// Runs kv with the operator's configuration.
  ///
  /// fail_point  the process is killed when it reaches this step (base/fail_point.h); empty: it is not.
  Output Kv(const std::vector<std::string>& arguments, const std::string& fail_point = "") const;
  /// Runs the same; expects exit code 0 and returns standard output.
  std::string Ok(const std::vector<std::string>& arguments) const;
  /// Runs the same with --json.
  nlohmann::json OkJson(std::vector<std::string> arguments) const;
  /// Runs the same; expects exit code 1 with this text on standard error.
  void Fails(const std::vector<std::string>& arguments, const std::string& text) const;

  /// Writes some objects, mappings and rows, on all shards, which say `round`.
  void Write(const std::string& round);
  /// All units of the datasets "pins", "boards" and "events", in this order.
  static std::vector<std::vector<Unit>> UnitsIn(Router& store);
  std::vector<std::vector<Unit>> Units() { return UnitsIn(*store_); }

  /// Sends the log of the slave since the newest backup, by another process than before.
  absl::Status Ship();
  /// Waits until the slave has all that the master has.
  void AwaitSlave();
  /// Removes the binary logs of a server but the one in use.
  static void PurgeLogs(MariaDbServer& server);

 private:
  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
};

/// Waits until the clock shows another second, and returns that in ms since 1970: what was committed before
/// was committed before this time, and what will be, was not.
uint64_t NextSecond();

/// The units of some shards alone; of all three datasets, as UnitsIn returns them.
std::vector<std::vector<Unit>> OfShards(std::vector<std::vector<Unit>> units,
                                        const shardops::MoveRange& shards);

/// Restored shards that are looked at: the server in their folder runs as long as this.
class LookedAt {
 public:
  explicit LookedAt(const std::filesystem::path& folder);
  ~LookedAt();
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;
  /// Returns the units of these shards, as UnitsIn does; no units of datasets that are not there.
  std::vector<std::vector<Unit>> Units();

 private:
  const std::filesystem::path folder_;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
