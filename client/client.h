#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_api/backups.h"
#include "backend_api/migration_endpoint.h"
#include "backend_api/migrations.h"
#include "backend_api/shard_maps.h"
#include "backend_api/shard_operations.h"
#include "kvstore_api/connect.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::v1 {
class UpdateObjectRequest;
}

namespace kvstore::client {

// Those who use a client need not read what gRPC has generated, which takes long to compile.
class Caller;

/// The KVStore behind a server, the migrations of its datasets, the shard maps and the operation of its
/// fleet, and its backups. See kvstore_api/connect.h. Thread-safe.
class Client : public KVStore,
               public Migrations,
               public ShardMaps,
               public ShardOperations,
               public BackupMaker {
 public:
  /// Returns at once; see kvstore::Connect for addresses and errors.
  static absl::StatusOr<std::unique_ptr<Client>> Open(const std::string& address,
                                                      const ConnectOptions& options);
  explicit Client(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  // The methods of KVStore.
#define KV_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

  /// Returns the text of the server's /metrics.
  absl::StatusOr<std::string> GetMetrics();

  absl::StatusOr<Json> Command(const Json& command) override;

  absl::StatusOr<std::string> GetShardMap(ShardSpace space) override;
  absl::StatusOr<std::vector<Kept>> ListShardMaps(ShardSpace space) override;

  /// A command that was sent is not sent again, whatever becomes of it. UNIMPLEMENTED if the server is of a
  /// version that does not know such commands; UNAVAILABLE if it was lost, and how far the command came is
  /// not known. A caller that cancels (CallLimits::cancelled), or ends, stops it as ShardEvents::progress
  /// does.
  absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) override;

  absl::StatusOr<Made> CreateBackup(std::string_view dataset, const Progress& progress) override;

  const std::string& address() const;
  /// Returns what makes the calls, for other parts of the client that share its connections.
  const std::shared_ptr<Caller>& caller() const { return caller_; }
  /// Opens a dataset in the backend that the spec names on the server, for the worker of a migration.
  std::unique_ptr<MigrationEndpoint> OpenForMigration(const DatasetSpec& spec) const;

 private:
  absl::StatusOr<Object> Update(v1::UpdateObjectRequest& request);
  /// PutRows with more than one message. Adds a result for each write.
  absl::Status Import(std::string_view dataset, std::span<const RowWrite> writes,
                      std::vector<absl::StatusOr<PutResult>>& results);

  const std::shared_ptr<Caller> caller_;
};

}  // namespace kvstore::client
