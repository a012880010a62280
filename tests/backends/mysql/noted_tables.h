#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backend_api/table_records.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// Records in memory of tables that were made on first use. Thread-safe.
struct TableNotes {
  using Key = std::pair<uint64_t, std::string>;  // incarnation and engine
  Mutex mutex;
  std::map<Key, std::set<uint32_t>> made ABSL_GUARDED_BY(mutex);
  std::atomic<bool> away{false};  ///< All calls are UNAVAILABLE.
};

/// One process's access to them.
class NotedTables : public TableRecords {
 public:
  explicit NotedTables(std::shared_ptr<TableNotes> notes) : notes_(std::move(notes)) {}

  absl::Status Begin(const DatasetSpec& spec) override {
    if (notes_->away) return absl::UnavailableError("the records are away");
    const MutexLock lock(notes_->mutex);
    notes_->made.try_emplace(KeyOf(spec));
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<bool>> Find(const DatasetSpec& spec, uint32_t shard) override {
    if (notes_->away) return absl::UnavailableError("the records are away");
    const MutexLock lock(notes_->mutex);
    const auto record = notes_->made.find(KeyOf(spec));
    if (record == notes_->made.end()) return std::nullopt;
    return record->second.contains(shard);
  }
  absl::StatusOr<Noted> Add(const DatasetSpec& spec, uint32_t shard) override {
    if (notes_->away) return absl::UnavailableError("the records are away");
    const MutexLock lock(notes_->mutex);
    const auto record = notes_->made.find(KeyOf(spec));
    if (record == notes_->made.end()) return absl::NotFoundError("there is no record");
    return record->second.insert(shard).second ? Noted::kNow : Noted::kBefore;
  }
  absl::Status End(const DatasetSpec& spec) override {
    if (notes_->away) return absl::UnavailableError("the records are away");
    const MutexLock lock(notes_->mutex);
    notes_->made.erase(KeyOf(spec));
    return absl::OkStatus();
  }

 private:
  static TableNotes::Key KeyOf(const DatasetSpec& spec) { return {spec.incarnation, spec.engine}; }

  const std::shared_ptr<TableNotes> notes_;
};

}  // namespace kvstore::testing
