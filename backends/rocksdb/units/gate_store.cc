#include "backends/rocksdb/units/gate_store.h"

#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <string_view>

#include "backends/rocksdb/engine/dirty_log.h"
#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"

namespace kvstore::rocks {
namespace {

/// The form of a StoredGate: "migration/" be64(incarnation) -> state, capture, be64(epoch), be64(ids).
constexpr std::string_view kGatePrefix = "migration/";
constexpr size_t kGateBytes = 1 + 1 + 8 + 8;
constexpr auto kLastState = static_cast<uint8_t>(EndpointState::kMoved);
/// How many IDs of a dirty log one run of this process may assign.
constexpr uint64_t kIdsPerRun = uint64_t{1} << 40;

std::string GateKey(uint64_t incarnation) {
  std::string key(kGatePrefix);
  AppendBigEndian(key, incarnation);
  return key;
}

}  // namespace

absl::Status RestoreGate(Engine& engine, Family& family) {
  const auto stored = LoadGate(engine, family.settings->incarnation);
  if (!stored.ok()) return stored.status();
  family.gate.epoch = stored->epoch;
  family.gate.capture = stored->capture;
  family.gate.ids = stored->ids;
  if (stored->capture) {
    if (auto status = OpenDirtyLog(engine, family); !status.ok()) return status;
  }
  family.gate.SetState(stored->state, stored->capture);
  return absl::OkStatus();
}

absl::StatusOr<StoredGate> LoadGate(Engine& engine, uint64_t incarnation) {
  std::string stored;
  const auto status = engine.db().Get({}, engine.meta(), GateKey(incarnation), &stored);
  if (status.IsNotFound()) return StoredGate{};
  if (!status.ok()) return ToStatus(status, "read the state of a migration");
  if (stored.size() != kGateBytes || static_cast<uint8_t>(stored[0]) > kLastState) {
    return absl::DataLossError("the stored state of a migration does not decode");
  }
  const std::string_view rest(stored);
  return StoredGate{.state = static_cast<EndpointState>(stored[0]),
                    .capture = stored[1] != 0,
                    .epoch = ReadBigEndian<uint64_t>(rest.substr(2)),
                    .ids = ReadBigEndian<uint64_t>(rest.substr(10))};
}

bool HasGate(Engine& engine, uint64_t incarnation) {
  std::string stored;
  return !engine.db().Get({}, engine.meta(), GateKey(incarnation), &stored).IsNotFound();
}

absl::Status StoreGate(Engine& engine, uint64_t incarnation, const StoredGate& gate) {
  std::string value;
  value.push_back(static_cast<char>(gate.state));
  value.push_back(gate.capture ? 1 : 0);
  AppendBigEndian(value, gate.epoch);
  AppendBigEndian(value, gate.ids);
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Put(engine.meta(), GateKey(incarnation), value); !status.ok()) {
    return ToStatus(status, "store the state of a migration");
  }
  return engine.Write(batch, /*sync=*/true);
}

absl::Status RemoveGate(Engine& engine, uint64_t incarnation) {
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Delete(engine.meta(), GateKey(incarnation)); !status.ok()) {
    return ToStatus(status, "remove the state of a migration");
  }
  return engine.Write(batch, /*sync=*/true);
}

absl::Status OpenDirtyLog(Engine& engine, Family& family) {
  // A log that is left from an earlier migration has IDs that would be assigned again.
  if (!family.gate.capture) {
    if (auto status = DropDirtyLog(engine, family); !status.ok()) return status;
  }
  const auto handle = engine.OpenAuxiliaryFamily(DirtyLog::FamilyName(family.settings->name));
  if (!handle.ok()) return handle.status();
  // Each run assigns IDs from a range of its own.
  const uint64_t first = family.gate.ids;
  family.gate.ids = first + kIdsPerRun;
  family.gate.SetDirtyLog(std::make_shared<DirtyLog>(
      &engine.db(), *handle, first,
      [&engine](rocksdb::ColumnFamilyHandle* closed) { engine.CloseAuxiliaryFamily(closed); }));
  auto stored = LoadGate(engine, family.settings->incarnation);
  if (!stored.ok()) return stored.status();
  stored->ids = family.gate.ids;
  return StoreGate(engine, family.settings->incarnation, *stored);
}

absl::Status DropDirtyLog(Engine& engine, Family& family) {
  const auto& dirty = family.gate.dirty_log();
  const std::string name = DirtyLog::FamilyName(family.settings->name);
  if (auto status = engine.DropAuxiliaryFamily(name, dirty ? dirty->handle() : nullptr); !status.ok())
    return status;
  family.gate.SetDirtyLog(nullptr);
  return absl::OkStatus();
}

}  // namespace kvstore::rocks
