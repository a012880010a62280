#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_api/validate.h"
#include "kvstore_api/kvstore.h"
#include "router/forwarding_store.h"
#include "router/router.h"
#include "server/call/access.h"
#include "server/http/held_memory.h"

namespace kvstore::server {

/// The store as one call of one caller sees it: with the datasets that the caller may read, pages of bounded
/// size, and batches that go on where they were when their dataset has migrated. It belongs to one call,
/// whose operation makes one call of it, again after each migration. Externally synchronised.
class CallerStore : public ForwardingStore {
 public:
  /// memory  Counts what is read. Must outlive this, as the router.
  CallerStore(Router& router, HeldMemory& memory)
      : ForwardingStore(router), router_(router), memory_(memory) {}

  /// Sets who calls; null: everybody may do everything.
  void SetPrincipal(std::shared_ptr<const Principal> principal) { principal_ = std::move(principal); }
  /// Makes a create idempotent (CreateOptions::request_id).
  void SetRequestId(std::string id) { request_id_ = std::move(id); }
  /// Sets what long work tells how far it is.
  void SetProgress(Progress progress) { progress_ = std::move(progress); }

  /// Prepares for the operation, which is carried out for the first time or again.
  void BeginAgain() {
    migrating_ = absl::OkStatus();
    memory_.Release();
  }
  /// Returns the error of an entry of a batch that was not carried out because its dataset migrates; OK:
  /// there is none. When the same batch comes again, only such entries of writes are carried out.
  const absl::Status& migrating() const { return migrating_; }
  /// Returns whether some of a batch of writes was done.
  bool has_begun() const { return !puts_.empty() || !deletes_.empty(); }
  /// Returns the object as the last update has left it; nothing: there was none.
  const std::optional<Object>& updated() const { return updated_; }

  absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() override;
  absl::StatusOr<ReclaimResult> Compact(std::string_view dataset, const Progress& progress) override;
  absl::StatusOr<ChangePage> ReadChanges(std::string_view dataset, std::string_view from,
                                         const ChangeOptions& options) override;
  absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                             const ReadOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(std::string_view dataset,
                                                           std::span<const RowRead> reads) override;
  absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(std::string_view dataset,
                                                                 std::span<const RowWrite> writes) override;
  absl::StatusOr<std::vector<absl::Status>> DeleteRows(std::string_view dataset,
                                                       std::span<const RowDelete> deletes) override;
  absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset, const RowRange& range,
                                                      const ScanOptions& options) override;
  absl::StatusOr<uint64_t> CreateObject(std::string_view dataset, std::string_view data,
                                        const CreateOptions& options) override;
  absl::StatusOr<Object> GetObject(std::string_view dataset, uint64_t id,
                                   const ObjectReadOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Object>>> GetObjects(std::string_view dataset,
                                                                 std::span<const uint64_t> ids,
                                                                 const ObjectReadOptions& options) override;
  absl::StatusOr<Object> PatchObject(std::string_view dataset, uint64_t id, std::string_view merge_patch,
                                     const UpdateOptions& options) override;
  absl::StatusOr<ObjectPage> ScanObjects(std::string_view dataset, const IdRange& range,
                                         const ObjectScanOptions& options) override;
  absl::StatusOr<JoinedPage> ListObjects(std::string_view dataset, uint64_t from,
                                         const MappingListOptions& options) override;

 private:
  /// Sets migrating_ if the error says so.
  void Note(const absl::Status& status);
  /// Carries out a batch of writes, or what is left of it.
  ///
  /// done  The results so far, of earlier attempts too; empty: there was none.
  /// send  Sends entries to the router.
  template <typename Result, typename Entry, typename Send>
  absl::StatusOr<std::vector<Result>> Resume(std::span<const Entry> entries, std::vector<Result>& done,
                                             const Send& send);
  /// Reads a batch piece by piece, so that not much more is in memory than an answer may have. Entries after
  /// that get the error that says so.
  ///
  /// read  Reads entries.
  /// hold  Counts a result; returns how many bytes it has.
  template <typename Value, typename Entry, typename Read, typename Hold>
  absl::StatusOr<std::vector<absl::StatusOr<Value>>> ReadInPieces(std::span<const Entry> entries,
                                                                  const Read& read, const Hold& hold);

  Router& router_;
  HeldMemory& memory_;
  std::shared_ptr<const Principal> principal_;
  std::string request_id_;
  Progress progress_;
  absl::Status migrating_;
  std::vector<absl::StatusOr<PutResult>> puts_;
  std::vector<absl::Status> deletes_;
  std::optional<Object> updated_;
};

}  // namespace kvstore::server
