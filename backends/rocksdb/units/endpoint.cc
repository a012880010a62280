#include "backends/rocksdb/endpoint.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/object_store.h"
#include "backends/rocksdb/partitions.h"
#include "backends/rocksdb/units.h"
#include "base/files.h"
#include "base/hash.h"
#include "idgen/object_id.h"
#include "kvstore_api/unit_key.h"

namespace kvstore::rocks {
namespace {

using State = EndpointState;

absl::Status CheckEpoch(const Gate& gate, uint64_t epoch) {
  if (gate.epoch == epoch) return absl::OkStatus();
  return absl::AbortedError(fmt::format(
      "the migration's worker has epoch {}, another one has taken over with {}", epoch, gate.epoch));
}

/// The locks of the rows of `units`; none for other shapes.
absl::StatusOr<std::vector<std::shared_lock<std::shared_mutex>>> ShareRows(Engine& engine,
                                                                           const Family& family, Shape shape,
                                                                           std::span<const Unit> units) {
  std::vector<std::shared_lock<std::shared_mutex>> locks;
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

bool IsLegal(State from, State to) {
  switch (to) {
    case State::kAbsent:
      return from == State::kImporting || from == State::kMoved;
    case State::kImporting:
      return from == State::kImporting;
    case State::kServing:
      return from != State::kAbsent;
    case State::kFrozen:
      return from == State::kServing || from == State::kFrozen;
    case State::kMoved:
      return from == State::kFrozen || from == State::kMoved;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Family>> RocksEndpoint::Find() const {
  auto family = engine_->FindFamily(spec_.name);
  if (family && family->settings->incarnation == spec_.incarnation) return family;
  return absl::FailedPreconditionError(fmt::format("dataset: '{}' is not in this backend", spec_.name));
}

absl::StatusOr<std::string> RocksEndpoint::Extent() { return std::string(); }

absl::Status RocksEndpoint::Limit(const std::string& extent) {
  if (extent.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("extent: an embedded store has no shards");
}

absl::StatusOr<EndpointStatus> RocksEndpoint::Status() {
  const auto family = Find();
  if (!family.ok()) {
    const auto stored = engine_->LoadGate(spec_.incarnation);
    if (!stored.ok()) return stored.status();
    return EndpointStatus{.partitions = {{State::kAbsent, 1}}, .epoch = stored->epoch};
  }
  Gate& gate = (*family)->gate;
  const std::shared_lock lock(gate.mutex);
  return EndpointStatus{.partitions = {{gate.state(), 1}}, .capture = gate.capture, .epoch = gate.epoch};
}

absl::StatusOr<std::string> RocksEndpoint::Boot() {
  // What a process that was killed had written is there; what the machine had not yet is lost with it.
  static const std::string boot = ReadFile("/proc/sys/kernel/random/boot_id").value_or("");
  return boot;
}

absl::Status RocksEndpoint::RaiseEpoch(uint64_t epoch) {
  const auto too_late = [&](uint64_t current) {
    return absl::AbortedError(
        fmt::format("epoch: {} is not above {}, which another worker has", epoch, current));
  };
  const auto family = Find();
  if (!family.ok()) {
    auto stored = engine_->LoadGate(spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch >= epoch) return too_late(stored->epoch);
    return engine_->StoreGate(spec_.incarnation, {.state = State::kAbsent, .epoch = epoch});
  }
  Gate& gate = (*family)->gate;
  const std::unique_lock lock(gate.mutex);
  if (gate.epoch >= epoch) return too_late(gate.epoch);
  StoredGate stored{.state = gate.state(), .capture = gate.capture, .epoch = epoch, .ids = gate.ids};
  if (auto status = engine_->StoreGate(spec_.incarnation, stored); !status.ok()) return status;
  gate.epoch = epoch;
  return absl::OkStatus();
}

absl::Status RocksEndpoint::EnterAbsent(uint64_t epoch) {
  const auto family = Find();
  if (family.ok()) {
    Gate& gate = (*family)->gate;
    const std::unique_lock lock(gate.mutex);
    if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
    if (!IsLegal(gate.state(), State::kAbsent)) {
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' is {} here, and not removed", spec_.name, Name(gate.state())));
    }
    // What fails, on a full disk say, leaves the epoch as it was, so that it can be tried again.
    if (auto status = engine_->DropDirty(**family); !status.ok()) return status;
    if (auto status = engine_->DropFamily(spec_.name); !status.ok()) return status;
    // Who has the family still, and waited for the lock, changes nothing of it any more.
    gate.epoch = UINT64_MAX;
  } else {
    const auto stored = engine_->LoadGate(spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch != 0 && stored->epoch != epoch) {
      return absl::AbortedError("another worker has taken over");
    }
  }
  if (spec_.shape == Shape::kObjects) {
    if (auto status = RocksObjectStore::DropState(*engine_, spec_.incarnation); !status.ok()) return status;
  }
  return engine_->RemoveGate(spec_.incarnation);
}

absl::Status RocksEndpoint::Enter(uint64_t epoch, State state, bool capture) {
  if (state == State::kAbsent) return EnterAbsent(epoch);
  auto family = Find();
  if (!family.ok()) {
    if (state != State::kImporting) return family.status();
    auto stored = engine_->LoadGate(spec_.incarnation);
    if (!stored.ok()) return stored.status();
    if (stored->epoch != epoch) return absl::AbortedError("another worker has taken over");
    // First what it is, so that no crash leaves it as one that serves.
    StoredGate importing{.state = State::kImporting, .epoch = epoch};
    if (auto status = engine_->StoreGate(spec_.incarnation, importing); !status.ok()) return status;
    if (auto status = engine_->CreateFamily(spec_); !status.ok()) return status;
    family = Find();
    if (!family.ok()) return family.status();
  }
  Gate& gate = (*family)->gate;
  const std::unique_lock lock(gate.mutex);
  const bool plain = state == State::kServing && !capture;
  // Of the migration nothing is left.
  if (plain && gate.epoch == 0 && gate.state() == State::kServing) return absl::OkStatus();
  if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
  if (!IsLegal(gate.state(), state)) {
    return absl::FailedPreconditionError(fmt::format("dataset: '{}' is {} here, which does not become {}",
                                                     spec_.name, Name(gate.state()), Name(state)));
  }
  if (capture && !gate.dirty()) {
    if (auto status = engine_->OpenDirty(**family); !status.ok()) return status;
  }
  {
    // Behind this no write is under way that saw the state before.
    const auto all = engine_->locks().ExcludeAll();
    const StoredGate stored{.state = state, .capture = capture, .epoch = epoch, .ids = gate.ids};
    if (auto status =
            plain ? engine_->RemoveGate(spec_.incarnation) : engine_->StoreGate(spec_.incarnation, stored);
        !status.ok()) {
      return status;
    }
    gate.Set(state, capture);
    gate.capture = capture;
    if (plain) gate.epoch = 0;
  }
  if (capture) return absl::OkStatus();
  return engine_->DropDirty(**family);
}

absl::Status RocksEndpoint::Reassert(uint64_t epoch, State state, bool capture) {
  const auto status = Status();
  if (!status.ok()) return status.status();
  const State at = status->partitions.begin()->first;
  absl::Status entered;
  if (state == State::kServing && at == State::kAbsent) {
    entered = Enter(epoch, State::kImporting, capture);
  } else if (state == State::kMoved && (at == State::kAbsent || at == State::kImporting)) {
    return Enter(epoch, State::kImporting, capture);
  } else if (state == State::kMoved && at == State::kServing) {
    entered = Enter(epoch, State::kFrozen, true);
  }
  return entered.ok() ? Enter(epoch, state, capture) : entered;
}

absl::StatusOr<std::vector<DirtyEntry>> RocksEndpoint::ReadDirty(size_t limit) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  const auto& dirty = (*family)->gate.dirty();
  if (!dirty) return std::vector<DirtyEntry>();
  return dirty->Read(limit);
}

absl::Status RocksEndpoint::RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  Gate& gate = (*family)->gate;
  const std::shared_lock lock(gate.mutex);
  if (auto status = CheckEpoch(gate, epoch); !status.ok()) return status;
  if (!gate.dirty()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  if (auto status = gate.dirty()->Remove(entries, batch); !status.ok()) return status;
  if (auto status = engine_->Write(batch, /*sync=*/false); !status.ok()) return status;
  // A write gives the ID of its entry and is committed under a row's lock.
  return gate.dirty()->Settle([&] { engine_->locks().PassAll(); });
}

absl::StatusOr<DirtyLag> RocksEndpoint::Lag() {
  const auto family = Find();
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  const auto& dirty = (*family)->gate.dirty();
  if (!dirty) return DirtyLag{};
  return dirty->Lag();
}

absl::StatusOr<std::vector<UnitRange>> RocksEndpoint::Partitions(size_t wanted) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  std::vector<UnitRange> ranges(1);
  if (spec_.shape == Shape::kRows) {
    const auto partitions = PartitionRows(*engine_, **family, wanted);
    if (!partitions.ok()) return partitions.status();
    for (const Partition& partition : *partitions) {
      if (partition.range.start.empty()) continue;
      std::string start;
      AppendEncoded(start, partition.range.start);
      ranges.back().end = start;
      ranges.push_back({.start = std::move(start)});
    }
    if (ranges.size() * 2 > wanted) return ranges;
    // Few files, or none.
    auto starts = SplitRows(*engine_, **family, wanted);
    if (!starts.ok()) return starts.status();
    ranges.assign(1, {});
    for (std::string& split : *starts) {
      ranges.back().end = split;
      ranges.push_back({.start = std::move(split)});
    }
    return ranges;
  }
  // The shard is the high part of the ID that a unit's key begins with.
  const auto used = NextLocalIds();
  if (!used.ok()) return used.status();
  const size_t step = std::max<size_t>(1, (used->size() + wanted - 1) / std::max<size_t>(wanted, 1));
  size_t i = 0;
  for (const auto& [shard, next] : *used) {
    if (i++ % step != 0 || i == 1) continue;
    std::string start = ObjectUnitKey(uint64_t{shard} << 46);
    ranges.back().end = start;
    ranges.push_back({.start = std::move(start)});
  }
  return ranges;
}

absl::StatusOr<std::vector<Unit>> RocksEndpoint::Read(std::span<const std::string> keys, uint64_t as_of) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  return ReadUnits(*engine_, **family, spec_.shape, keys, as_of);
}

absl::StatusOr<std::unique_ptr<UnitScan>> RocksEndpoint::Scan(const UnitRange& range, uint64_t as_of) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  if (!range.shard.empty()) return absl::InvalidArgumentError("an embedded store has no shards");
  return ScanUnits(engine_, *family, spec_.shape, range, as_of);
}

absl::Status RocksEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  Gate& gate = (*family)->gate;
  // Mappings count what they have: one replace at a time.
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
  // The trimmer reads a column, and deletes by what it has read: not across this.
  auto locks = ShareRows(*engine_, **family, spec_.shape, units);
  if (!locks.ok()) return locks.status();
  rocksdb::WriteBatch batch;
  if (auto status = ReplaceUnits(*engine_, **family, spec_.shape, units, fresh, batch); !status.ok()) {
    return status;
  }
  return engine_->Write(batch, (*family)->settings->sync);
}

absl::StatusOr<uint64_t> RocksEndpoint::LastTimestamp() {
  return spec_.shape == Shape::kRows ? engine_->timestamps().Latest() : 0;
}

absl::Status RocksEndpoint::RaiseTimestamp(uint64_t, uint64_t timestamp) {
  return engine_->timestamps().RaiseTo(timestamp);
}

absl::StatusOr<std::map<uint32_t, uint64_t>> RocksEndpoint::NextLocalIds() {
  if (spec_.shape != Shape::kObjects) return std::map<uint32_t, uint64_t>();
  return RocksObjectStore::Counters(*engine_, spec_.incarnation);
}

absl::Status RocksEndpoint::RaiseLocalIds(uint64_t epoch, const std::map<uint32_t, uint64_t>& next) {
  if (next.empty()) return absl::OkStatus();
  const auto family = Find();
  if (!family.ok()) return family.status();
  const std::shared_lock lock((*family)->gate.mutex);
  if (auto status = CheckEpoch((*family)->gate, epoch); !status.ok()) return status;
  auto store = backend_.OpenObjects(spec_);
  if (!store.ok()) return store.status();
  return static_cast<RocksObjectStore&>(**store).RaiseCounters(next);
}

}  // namespace kvstore::rocks
