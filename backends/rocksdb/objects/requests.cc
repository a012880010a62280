#include "backends/rocksdb/objects/requests.h"

#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "base/clock.h"

namespace kvstore::rocks {
namespace {

constexpr std::string_view kPrefix = "requests/";
constexpr uint64_t kDayMs = uint64_t{24} * 3600 * 1000;

uint32_t Today() { return static_cast<uint32_t>(WallClockMs() / kDayMs); }

std::string Key(uint64_t incarnation, uint32_t day, std::string_view request_id = "") {
  std::string key(kPrefix);
  AppendBigEndian(key, incarnation);
  AppendBigEndian(key, day);
  key += request_id;
  return key;
}

}  // namespace

absl::StatusOr<std::optional<uint64_t>> Requests::Find(std::string_view request_id) {
  const uint32_t today = Today();
  // Requests of tomorrow were added before the clock was set back over midnight.
  for (const uint32_t day : {today, today - 1, today + 1}) {
    std::string stored;
    const auto status = engine_.db().Get({}, engine_.meta(), Key(incarnation_, day, request_id), &stored);
    if (status.IsNotFound()) continue;
    if (!status.ok()) return ToStatus(status, "look for a request");
    if (stored.size() != sizeof(uint64_t)) return absl::DataLossError("a stored request does not decode");
    return ReadBigEndian<uint64_t>(stored);
  }
  return std::nullopt;
}

absl::Status Requests::Add(std::string_view request_id, uint64_t id, rocksdb::WriteBatch& batch) {
  const uint32_t today = Today();
  std::string value;
  AppendBigEndian(value, id);
  if (const auto status = batch.Put(engine_.meta(), Key(incarnation_, today, request_id), value);
      !status.ok()) {
    return ToStatus(status, "store a request");
  }
  return RemoveOld(today, batch);
}

absl::Status Requests::RemoveOld(uint32_t today, rocksdb::WriteBatch& batch) {
  const MutexLock lock(mutex_);
  if (removed_on_ == today) return absl::OkStatus();
  removed_on_ = today;
  return ToStatus(batch.DeleteRange(engine_.meta(), Key(incarnation_, 0), Key(incarnation_, today - 1)),
                  "forget requests");
}

absl::Status Requests::Drop(Engine& engine, uint64_t incarnation, rocksdb::WriteBatch& batch) {
  return ToStatus(batch.DeleteRange(engine.meta(), Key(incarnation, 0), Key(incarnation, UINT32_MAX)),
                  "forget requests");
}

}  // namespace kvstore::rocks
