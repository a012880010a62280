#include "backends/rocksdb/objects/mapping_store.h"

#include <rocksdb/write_batch.h>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/recorder.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/objects/page_scan.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "base/hash.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

// The kinds of keys. They are stored: never renumber.
constexpr uint8_t kCount = 1;
constexpr uint8_t kPair = 2;
constexpr uint8_t kOrder = 3;
constexpr uint8_t kAfterOrder = 4;

std::string Number(uint64_t value) {
  std::string bytes;
  AppendBigEndian(bytes, value);
  return bytes;
}

std::string KindKey(uint64_t from, uint8_t kind) {
  std::string key = Number(from);
  AppendBigEndian(key, kind);
  return key;
}

std::string PairKey(uint64_t from, uint64_t to) { return KindKey(from, kPair) + Number(to); }

/// A listing checks its caller's deadline after so many entries.
constexpr uint64_t kStepsBetweenChecks = 1024;

/// Returns the first place of an entry whose pair has this stored key, or a later one.
MappingPosition PlaceAt(std::string_view key) {
  const auto from = ReadBigEndian<uint64_t>(key);
  if (RocksMappingStore::IsPair(key)) {
    return {.from = from, .to = ReadBigEndian<uint64_t>(key.substr(sizeof(uint64_t) + 1))};
  }
  // The pairs of an ID are after its count, and before its entries by sequence.
  return {.from = key < KindKey(from, kPair) ? from : from + 1};
}

constexpr size_t kPairKeyBytes = 8 + 1 + 8;
constexpr size_t kOrderKeyBytes = 8 + 1 + 8 + 8;

/// A batch of changes that keeps the first error of its parts until it is written.
class Batch {
 public:
  explicit Batch(const Family& family) : family_(family) {}
  void Put(const std::string& key, const std::string& value) {
    KeepError(batch_.Put(family_.handle, key, value));
  }
  void Delete(const std::string& key) { KeepError(batch_.Delete(family_.handle, key)); }
  absl::Status Write(Engine& engine, uint64_t from, uint64_t to) {
    if (!status_.ok()) return ToStatus(status_, "change a mapping");
    Recorder recorder(family_);
    if (auto status = recorder.Add(batch_, MappingUnitKey(from, to)); !status.ok()) return status;
    return recorder.Write(engine, batch_, family_.settings->sync);
  }

 private:
  void KeepError(const rocksdb::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Family& family_;
  rocksdb::WriteBatch batch_;
  rocksdb::Status status_;
};

}  // namespace

// ---- keys ----

std::string RocksMappingStore::CountKey(uint64_t from) { return KindKey(from, kCount); }

std::string RocksMappingStore::PairPrefix(uint64_t from) { return KindKey(from, kPair); }

std::string RocksMappingStore::OrderKey(uint64_t from, uint64_t sequence, uint64_t to) {
  return KindKey(from, kOrder) + Number(sequence) + Number(to);
}

bool RocksMappingStore::IsPair(std::string_view key) {
  return key.size() == kPairKeyBytes && static_cast<uint8_t>(key[8]) == kPair;
}

std::string RocksMappingStore::UnitKeyOf(std::string_view pair) {
  std::string unit(pair.substr(0, 8));
  unit += pair.substr(9);
  return unit;
}

// ---- calls ----

uint64_t RocksMappingStore::Hash(uint64_t from) const {
  return Fnv1a(Number(from), family_->settings->incarnation);
}

absl::StatusOr<std::optional<uint64_t>> RocksMappingStore::GetNumber(const std::string& key) {
  std::string stored;
  const auto status = engine_->db().Get({}, family_->handle, key, &stored);
  if (status.IsNotFound()) return std::optional<uint64_t>();
  if (!status.ok()) return ToStatus(status, "read a mapping");
  if (stored.size() != sizeof(uint64_t)) return absl::DataLossError("a stored mapping does not decode");
  return std::optional<uint64_t>(ReadBigEndian<uint64_t>(stored));
}

absl::Status RocksMappingStore::Add(uint64_t from, uint64_t to, std::optional<uint64_t> wanted) {
  const auto lock = engine_->locks().Exclude(Hash(from));
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  const uint64_t sequence = wanted ? *wanted : WallClockMs();
  const auto before = GetNumber(PairKey(from, to));
  if (!before.ok()) return before.status();
  if (*before == sequence) return absl::OkStatus();
  Batch batch(*family_);
  if (*before) {
    batch.Delete(OrderKey(from, **before, to));
  } else {
    const auto count = Count(from);
    if (!count.ok()) return count.status();
    batch.Put(KindKey(from, kCount), Number(*count + 1));
  }
  batch.Put(PairKey(from, to), Number(sequence));
  batch.Put(OrderKey(from, sequence, to), "");
  return batch.Write(*engine_, from, to);
}

absl::StatusOr<bool> RocksMappingStore::Remove(uint64_t from, uint64_t to) {
  const auto lock = engine_->locks().Exclude(Hash(from));
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  const auto before = GetNumber(PairKey(from, to));
  if (!before.ok()) return before.status();
  if (!*before) return false;
  const auto count = Count(from);
  if (!count.ok()) return count.status();
  Batch batch(*family_);
  batch.Delete(PairKey(from, to));
  batch.Delete(OrderKey(from, **before, to));
  if (*count <= 1) {
    batch.Delete(KindKey(from, kCount));
  } else {
    batch.Put(KindKey(from, kCount), Number(*count - 1));
  }
  if (auto status = batch.Write(*engine_, from, to); !status.ok()) return status;
  return true;
}

absl::StatusOr<uint64_t> RocksMappingStore::Count(uint64_t from) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  const auto count = GetNumber(KindKey(from, kCount));
  if (!count.ok()) return count.status();
  return count->value_or(0);
}

absl::StatusOr<MappingList> RocksMappingStore::List(uint64_t from, const MappingQuery& query) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  const std::string lower = KindKey(from, kOrder);
  const std::string upper = KindKey(from, kAfterOrder);
  const auto it = family_->iterators->Acquire(lower, upper);
  absl::Status over;
  uint64_t steps = 0;
  // Returns whether the iterator is at an entry, after each move of it. It also checks the caller's deadline,
  // because an offset may be any number.
  const auto found = [&] {
    if (over.ok() && !it->Valid()) over = PassDeleted(*it, query.descending);
    if (over.ok() && ++steps % kStepsBetweenChecks == 0) over = CheckCall();
    return over.ok() && it->Valid();
  };
  const auto step = [&] { query.descending ? it->Prev() : it->Next(); };
  if (query.after) {
    const std::string last = OrderKey(from, query.after->sequence, query.after->to);
    query.descending ? it->SeekForPrev(last) : it->Seek(last);
    if (found() && it->key() == last) step();
  } else {
    query.descending ? it->SeekForPrev(upper) : it->Seek(lower);
  }
  for (uint64_t skipped = 0; skipped < query.offset && found(); ++skipped) step();
  MappingList list;
  for (; found(); step()) {
    if (list.entries.size() == query.limit) {
      list.more = true;
      break;
    }
    const std::string_view key = it->key().ToStringView();
    if (key.size() != kOrderKeyBytes) return absl::DataLossError("a stored mapping does not decode");
    list.entries.push_back(
        {.to = ReadBigEndian<uint64_t>(key.substr(17)), .sequence = ReadBigEndian<uint64_t>(key.substr(9))});
  }
  if (!over.ok()) return over;
  if (!it->status().ok()) return ToStatus(it->status(), "list a mapping");
  return list;
}

absl::StatusOr<MappingScanPage> RocksMappingStore::Scan(const MappingPosition& start, uint64_t end,
                                                        uint32_t limit) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  PageScan scan(*engine_, *family_, PairKey(start.from, start.to), Number(end));
  MappingScanPage page;
  for (;;) {
    const auto at = scan.Find();
    if (!at.ok()) return at.status();
    if (*at == PageScan::At::kEnd) return page;
    if (scan.key().size() < sizeof(uint64_t)) return absl::DataLossError("a stored mapping does not decode");
    const MappingPosition place = PlaceAt(scan.key());
    if (place.from >= end) return page;
    const bool is_pair = IsPair(scan.key());
    if (*at == PageScan::At::kPaused || (is_pair && page.entries.size() == limit)) {
      page.next = place;
      return page;
    }
    if (!is_pair) {
      scan.Seek(PairKey(place.from, place.to));
      continue;
    }
    const std::string_view value = scan.value();
    if (value.size() != sizeof(uint64_t)) return absl::DataLossError("a stored mapping does not decode");
    page.entries.push_back({.from = place.from, .to = place.to, .sequence = ReadBigEndian<uint64_t>(value)});
    scan.Next();
  }
}

absl::StatusOr<std::vector<Partition>> RocksMappingStore::Partitions(size_t wanted) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  return PartitionIds(*engine_, *family_, wanted);
}

}  // namespace kvstore::rocks
