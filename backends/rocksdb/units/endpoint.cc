#include "backends/rocksdb/units/endpoint.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/objects/object_store.h"
#include "backends/rocksdb/units/gate_store.h"
#include "backends/rocksdb/units/units.h"
#include "base/files.h"
#include "base/hash.h"

namespace kvstore::rocks {
namespace {

using State = EndpointState;

absl::Status CheckEpoch(const Gate& gate, uint64_t epoch) {
  if (gate.epoch == epoch) return absl::OkStatus();
  return absl::AbortedError(fmt::format(
      "the migration's worker has epoch {}, another one has taken over with {}", epoch, gate.epoch));
}

/// Takes the locks of the rows of `units`, shared; other shapes need none.
absl::StatusOr<std::vector<RowLocks::SharedLock>> ShareRows(Engine& engine, const Family& family, Shape shape,
                                                            std::span<const Unit> units) {
  std::vector<RowLocks::SharedLock> locks;
  if (shape != Shape::kRows) return locks;
  std::set<size_t> stripes;
  for (const Unit& unit : units) {
    const auto parsed = ParseRowUnitKey(unit.key);
    if (!parsed) return absl::InvalidArgumentError("a unit's key is not that of a column");
    stripes.insert(RowLocks::StripeOf(Fnv1a(parsed->row, family.settings->incarnation)));
  }
  locks.reserve(stripes.size());
  for (const size_t stripe : stripes) locks.push_back(engine.locks().ShareStripe(stripe));
  return locks;
}

}  // namespace

absl::StatusOr<std::string> RocksEndpoint::Extent() { return std::string(); }

absl::Status RocksEndpoint::Limit(const std::string& extent) {
  if (extent.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("extent: an embedded store has no shards");
}

absl::StatusOr<EndpointStatus> RocksEndpoint::Status() {
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) {
    const auto stored = LoadGate(*engine_, spec_.incarnation);
    if (!stored.ok()) return stored.status();
    return EndpointStatus{.partitions = {{State::kAbsent, 1}}, .epoch = stored->epoch};
  }
  Gate& gate = (*family)->gate;
  const std::shared_lock lock(gate.mutex);
  return EndpointStatus{.partitions = {{gate.state(), 1}}, .capture = gate.capture, .epoch = gate.epoch};
}

absl::StatusOr<std::string> RocksEndpoint::BootId() {
  // A killed process loses nothing that it had written, but a machine that restarts may lose what was not
  // synced. So the boot ID of the kernel is what matters.
  static const std::string boot = ReadFile("/proc/sys/kernel/random/boot_id").value_or("");
  return boot;
}

absl::Status RocksEndpoint::RaiseEpoch(uint64_t epoch) {
  const auto too_late = [&](uint64_t current) {
    return absl::AbortedError(
        fmt::format("epoch: {} is not above {}, which another worker has", epoch, current));
  };
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) {
    auto stored = LoadGate(*engine_, spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch >= epoch) return too_late(stored->epoch);
    return StoreGate(*engine_, spec_.incarnation, {.state = State::kAbsent, .epoch = epoch});
  }
  Gate& gate = (*family)->gate;
  const std::unique_lock lock(gate.mutex);
  if (gate.epoch >= epoch) return too_late(gate.epoch);
  StoredGate stored{.state = gate.state(), .capture = gate.capture, .epoch = epoch, .ids = gate.ids};
  if (auto status = StoreGate(*engine_, spec_.incarnation, stored); !status.ok()) return status;
  gate.epoch = epoch;
  return absl::OkStatus();
}

absl::Status RocksEndpoint::EnterAbsent(uint64_t epoch) {
  const auto family = FindDataset(*engine_, spec_);
  if (family.ok()) {
    Gate& gate = (*family)->gate;
    const std::unique_lock lock(gate.mutex);
    if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
    if (!MayTransition(gate.state(), gate.capture, State::kAbsent)) {
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' is {} here, and not removed", spec_.name, Name(gate.state())));
    }
    // If one of these fails, on a full disk for example, the epoch stays as it was, so that the worker can
    // retry.
    if (auto status = DropDirtyLog(*engine_, **family); !status.ok()) return status;
    if (auto status = engine_->DropFamily(spec_.name); !status.ok()) return status;
    // A caller that still holds the family, and has waited for the lock, must not change it any more.
    gate.epoch = UINT64_MAX;
  } else {
    const auto stored = LoadGate(*engine_, spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch != 0 && stored->epoch != epoch) {
      return absl::AbortedError("another worker has taken over");
    }
  }
  if (spec_.shape == Shape::kObjects) {
    if (auto status = RocksObjectStore::DropState(*engine_, spec_.incarnation); !status.ok()) return status;
  }
  return RemoveGate(*engine_, spec_.incarnation);
}

absl::Status RocksEndpoint::TransitionTo(uint64_t epoch, State state, bool capture) {
  if (state == State::kAbsent) return EnterAbsent(epoch);
  auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) {
    if (state != State::kImporting) return family.status();
    auto stored = LoadGate(*engine_, spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch != epoch) return absl::AbortedError("another worker has taken over");
    // Store the state first, so that no crash leaves the new family serving.
    StoredGate importing{.state = State::kImporting, .epoch = epoch};
    if (auto status = StoreGate(*engine_, spec_.incarnation, importing); !status.ok()) return status;
    if (auto status = engine_->CreateFamily(spec_); !status.ok()) return status;
    family = FindDataset(*engine_, spec_);
    if (!family.ok()) return family.status();
  }
  Gate& gate = (*family)->gate;
  const std::unique_lock lock(gate.mutex);
  const bool plain = state == State::kServing && !capture;
  // Nothing of the migration is left, so there is nothing to do.
  if (plain && gate.epoch == 0 && gate.state() == State::kServing) return absl::OkStatus();
  if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
  if (!MayTransition(gate.state(), gate.capture, state)) {
    return absl::FailedPreconditionError(fmt::format("dataset: '{}' is {} here, which does not become {}",
                                                     spec_.name, Name(gate.state()), Name(state)));
  }
  if (capture && !gate.dirty_log()) {
    if (auto status = OpenDirtyLog(*engine_, **family); !status.ok()) return status;
  }
  {
    // Once all locks are held, no write is in flight that saw the state before.
    const auto all = engine_->locks().ExcludeAll();
    const StoredGate stored{.state = state, .capture = capture, .epoch = epoch, .ids = gate.ids};
    if (auto status =
            plain ? RemoveGate(*engine_, spec_.incarnation) : StoreGate(*engine_, spec_.incarnation, stored);
        !status.ok()) {
      return status;
    }
    gate.SetState(state, capture);
    gate.capture = capture;
    if (plain) gate.epoch = 0;
  }
  if (capture) return absl::OkStatus();
  return DropDirtyLog(*engine_, **family);
}

absl::Status RocksEndpoint::Reassert(uint64_t epoch, State state, bool capture) {
  const auto status = Status();
  if (!status.ok()) return status.status();
  const State at = status->partitions.begin()->first;
  absl::Status entered;
  if (state == State::kServing && at == State::kAbsent) {
    entered = TransitionTo(epoch, State::kImporting, capture);
  } else if (state == State::kMoved && (at == State::kAbsent || at == State::kImporting)) {
    return TransitionTo(epoch, State::kImporting, capture);
  } else if (state == State::kMoved && at == State::kServing) {
    if (!status->capture) entered = TransitionTo(epoch, State::kServing, true);
    if (entered.ok()) entered = TransitionTo(epoch, State::kFrozen, true);
  }
  return entered.ok() ? TransitionTo(epoch, state, capture) : entered;
}

absl::StatusOr<std::vector<DirtyEntry>> RocksEndpoint::ReadDirty(size_t limit) {
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  const auto& dirty = (*family)->gate.dirty_log();
  if (!dirty) return std::vector<DirtyEntry>();
  return dirty->Read(limit);
}

absl::Status RocksEndpoint::RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) {
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family.status();
  Gate& gate = (*family)->gate;
  const std::shared_lock lock(gate.mutex);
  if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
  if (!gate.dirty_log()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  if (auto status = gate.dirty_log()->Remove(entries, batch); !status.ok()) return status;
  if (auto status = engine_->Write(batch, /*sync=*/false); !status.ok()) return status;
  // A write takes the ID of its entry, and commits it, under a row's lock.
  return gate.dirty_log()->SkipRemoved([&] { engine_->locks().WaitForHolders(); });
}

absl::StatusOr<DirtyLag> RocksEndpoint::Lag() {
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  const auto& dirty = (*family)->gate.dirty_log();
  if (!dirty) return DirtyLag{};
  return dirty->Lag();
}

absl::Status RocksEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family.status();
  Gate& gate = (*family)->gate;
  // A replace of mappings changes counts that it has read, so only one runs at a time.
  std::unique_lock<std::shared_mutex> alone;
  std::shared_lock<std::shared_mutex> shared;
  if (spec_.shape == Shape::kMappings) {
    alone = std::unique_lock(gate.mutex);
  } else {
    shared = std::shared_lock(gate.mutex);
  }
  if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
  if (gate.state() != State::kImporting && gate.state() != State::kMoved) {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: '{}' is {} here, and takes nothing from a migration", spec_.name, Name(gate.state())));
  }
  // The trimmer reads a column and then deletes by what it has read; the row locks keep that from overlapping
  // with this.
  auto locks = ShareRows(*engine_, **family, spec_.shape, units);
  if (!locks.ok()) return locks.status();
  rocksdb::WriteBatch batch;
  if (auto status = ReplaceUnits(*engine_, **family, spec_.shape, units, fresh, batch); !status.ok()) {
    return status;
  }
  return engine_->Write(batch, (*family)->settings->sync);
}

absl::Status RocksEndpoint::RaiseTimestamp(uint64_t, uint64_t timestamp) {
  return engine_->timestamps().RaiseTo(timestamp);
}

absl::Status RocksEndpoint::RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) {
  if (spec_.shape != Shape::kObjects) return absl::OkStatus();
  const auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  if (auto status = CheckEpoch((*family)->gate, epoch); !status.ok()) return status;
  return ids_->ForDataset(engine_, *family, spec_.type)->RaiseTo(next);
}

}  // namespace kvstore::rocks
