#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kvstore_api/metrics_sink.h"
#include "kvstore_api/migrations.h"
#include "kvstore_api/router.h"
#include "migration/migration.h"

namespace kvstore {

/// The migrations of this process' datasets: a thread for each that is started. Where the catalog is shared,
/// one process is at a migration: the others say which; when that one is gone, any other may `resume` it.
/// Thread-safe.
class Migrator : public Migrations {
 public:
  /// The router must outlive it.
  ///
  /// audit  file to which a line of JSON is added for each command and each step; empty: none.
  Migrator(Router& router, std::filesystem::path audit);
  /// Stops all threads between two steps. The migrations stay as they are, to be resumed.
  ~Migrator() override;

  /// Goes on with the migrations whose process is gone, now and from now on, as long as this lives: of many
  /// processes that have both backends of one, one is at it.
  void TakeOverAbandoned();

  absl::StatusOr<Json> Command(const Json& command) override;

  void Describe(MetricsSink& sink) const override;

 private:
  struct Running {
    std::shared_ptr<migration::Migration> migration;
    std::thread thread;
    bool ended = false;  // guarded by mutex_
  };
  /// The fields of a command.
  struct Options;

  /// One look.
  absl::Status ResumeAbandoned();
  absl::StatusOr<Json> Create(const Options& options);
  /// Of all datasets that migrate.
  absl::StatusOr<std::vector<std::string>> Names();
  absl::StatusOr<Json> List();
  absl::StatusOr<Json> Status(const std::string& dataset);
  absl::Status Start(const Options& options, bool resume);
  absl::StatusOr<Json> Ask(const Options& options);
  /// Of resolve and abandon: the backend that is named.
  absl::Status CheckSide(const migration::Record& record, const Options& options);
  /// One that this process works at; null if there is none.
  std::shared_ptr<migration::Migration> Find(const std::string& dataset) const;
  /// How it stands: here, as it is stored, or as it ended here last. NOT_FOUND if there is none.
  absl::StatusOr<migration::Record> Look(const std::string& dataset);
  /// Forgets a migration of this process that is at its end.
  void Forget(const std::string& dataset);
  void Audit(const Options& options, const absl::Status& status);

  Router& router_;
  const std::filesystem::path audit_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Running>, std::less<>> running_;  // guarded by mutex_
  std::mutex audit_mutex_;
  std::mutex start_mutex_;  // one start at a time
  std::condition_variable stopped_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread follower_;
};

}  // namespace kvstore
