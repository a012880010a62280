#pragma once

#include <rocksdb/write_batch.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "backend_api/outcome.h"
#include "backends/rocksdb/engine/change_log.h"
#include "backends/rocksdb/engine/dirty_log.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/engine/family.h"

namespace kvstore::rocks {

/// Records which units a client's write touches, in the batch of the write: in the dirty log while a
/// migration captures writes, and in the change log if the dataset keeps its changes. Costs two loads if
/// there is neither. The caller holds the locks of the write as long as this exists (Gate::capture_log). One
/// for each batch; externally synchronised.
class Recorder {
 public:
  explicit Recorder(const Family& family)
      : dirty_(family.gate.capture_log()), changes_(family.gate.change_log()) {}
  ~Recorder() {
    if (writing_) changes_->End(*writing_, 0, ChangeLog::Outcome::kNothing);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Whether anything is recorded; else Add does nothing.
  bool records() const { return dirty_ != nullptr || changes_ != nullptr; }

  /// Records that the batch touches a unit, or, for rows, a whole row.
  absl::Status Add(rocksdb::WriteBatch& batch, std::string_view unit) {
    if (dirty_ != nullptr) {
      if (auto status = dirty_->Add(batch, unit); !status.ok()) return status;
    }
    if (changes_ == nullptr) return absl::OkStatus();
    if (!writing_) writing_ = changes_->Begin();
    // Cells of one column follow each other.
    if (unit == last_) return absl::OkStatus();
    last_ = unit;
    ChangeLog::AppendUnit(units_, unit);
    return absl::OkStatus();
  }

  /// Writes the batch with what was recorded. As Engine::Write.
  absl::Status Write(Engine& engine, rocksdb::WriteBatch& batch, bool sync) {
    if (!writing_) return engine.Write(batch, sync);
    if (auto status = changes_->Add(batch, *writing_, units_); !status.ok()) return status;
    auto status = engine.Write(batch, sync);
    using Outcome = ChangeLog::Outcome;
    const Outcome failed = IsInDoubt(status) ? Outcome::kInDoubt : Outcome::kNothing;
    changes_->End(*writing_, units_.size(), status.ok() ? Outcome::kWritten : failed);
    writing_.reset();
    return status;
  }

 private:
  DirtyLog* const dirty_;
  ChangeLog* const changes_;
  std::optional<ChangeLog::Writing> writing_;
  std::string units_;  // as AppendUnit made them
  std::string last_;
};

}  // namespace kvstore::rocks
