#include "export/changes_source.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "blobstore/sha256.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/changes.h"

namespace kvstore::exports {
namespace {

/// How long to wait where there are no changes, and it is not known yet whether all were told.
constexpr std::chrono::milliseconds kPause{100};

Unit UnitOf(RowChange&& change) {
  if (change.column) return {RowUnitKey(change.row, *change.column), std::move(change.cells)};
  std::string key;
  AppendEncoded(key, change.row);
  return {std::move(key), {}};
}

Unit UnitOf(ObjectChange&& change) {
  Unit unit{ObjectUnitKey(change.id), {}};
  if (change.data) unit.cells.push_back({change.timestamp, *std::move(change.data)});
  return unit;
}

Unit UnitOf(MappingChange&& change) {
  Unit unit{MappingUnitKey(change.from, change.to), {}};
  if (!change.sequence) return unit;
  std::string sequence;
  AppendBigEndian(sequence, *change.sequence);
  unit.cells.push_back({0, std::move(sequence)});
  return unit;
}

/// Keys, by a part of their SHA-256 that no two have.
class KeySet {
 public:
  /// Returns whether it is new.
  bool Insert(std::string_view key) {
    hash_.Add(key);
    const Sha256Digest digest = hash_.Finish();
    std::array<uint64_t, 2> part{};
    std::memcpy(part.data(), digest.data(), sizeof(part));
    return keys_.insert(part).second;
  }
  size_t size() const { return keys_.size(); }

 private:
  Sha256 hash_;
  absl::flat_hash_set<std::array<uint64_t, 2>> keys_;
};

class ChangeUnits : public UnitScan {
 public:
  ChangeUnits(KVStore& store, const DatasetSpec& spec, std::string since, uint64_t until_ms, size_t most)
      : store_(store), spec_(spec), token_(std::move(since)), until_ms_(until_ms), most_(most) {}

  absl::StatusOr<std::vector<Unit>> Next() override {
    std::vector<Unit> units;
    while (units.empty() && !ended_) {
      if (auto status = CheckCall(); !status.ok()) return status;
      auto page = store_.ReadChanges(spec_.name, token_, {});
      if (!page.ok()) return page.status();
      for (Change& change : page->changes) {
        if (auto status = Add(std::move(change), units); !status.ok()) return status;
      }
      token_ = std::move(page->token);
      ended_ = page->complete_until_ms != 0 && page->complete_until_ms >= until_ms_;
      if (!ended_ && page->changes.empty()) std::this_thread::sleep_for(kPause);
    }
    return units;
  }

 private:
  absl::Status Add(Change change, std::vector<Unit>& units) {
    auto* const row = std::get_if<RowChange>(&change.what);
    const bool more = row != nullptr && row->more;
    const std::string row_key = more ? row->row : "";
    const std::string column = more ? *row->column : "";
    Unit unit = std::visit([](auto&& what) { return UnitOf(std::move(what)); }, std::move(change.what));
    if (!seen_.Insert(unit.key)) return absl::OkStatus();
    if (seen_.size() > most_) {
      return absl::ResourceExhaustedError(
          fmt::format("since: more than {} units have changed since then: make a whole export", most_));
    }
    if (more) return AddColumn(row_key, column, units);
    units.push_back(std::move(unit));
    return absl::OkStatus();
  }

  /// Adds a column of which a change does not tell all cells, in pieces.
  absl::Status AddColumn(const std::string& row, const std::string& column, std::vector<Unit>& units) {
    ReadOptions options;
    options.columns.emplace({column});
    options.versions = std::numeric_limits<uint32_t>::max();
    const size_t before = units.size();
    do {
      auto read = store_.GetRow(spec_.name, row, options);
      if (!read.ok()) return read.status();
      for (Item& item : read->items) units.push_back({RowUnitKey(row, column), std::move(item.cells)});
      options.marker = std::move(read->marker);
    } while (!options.marker.empty());
    if (units.size() == before) units.push_back({RowUnitKey(row, column), {}});
    return absl::OkStatus();
  }

  KVStore& store_;
  const DatasetSpec& spec_;
  std::string token_;
  const uint64_t until_ms_;
  const size_t most_;
  KeySet seen_;
  bool ended_ = false;
};

class ChangesSource : public ExportSource {
 public:
  ChangesSource(KVStore& store, DatasetSpec spec, std::string since, size_t most)
      : store_(store), spec_(std::move(spec)), since_(std::move(since)), most_(most) {}

  uint64_t as_of_ms() const override { return as_of_ms_; }
  bool is_snapshot() const override { return false; }
  size_t parts() const override { return 1; }
  absl::StatusOr<std::unique_ptr<UnitScan>> Open(size_t /*part*/) override {
    // Whoever has been told everything until this moment has been told all of before it.
    const auto now = store_.ReadChanges(spec_.name, kChangesFromNow, {.limit = 1});
    if (!now.ok()) return now.status();
    return std::make_unique<ChangeUnits>(store_, spec_, since_, now->complete_until_ms, most_);
  }

 private:
  KVStore& store_;
  const DatasetSpec spec_;
  const std::string since_;
  const size_t most_;
  const uint64_t as_of_ms_ = WallClockMs();
};

}  // namespace

absl::StatusOr<std::string> TokenOfNow(KVStore& store, const std::string& dataset) {
  auto page = store.ReadChanges(dataset, kChangesFromNow, {.limit = 1});
  if (!page.ok()) return page.status();
  return std::move(page->token);
}

std::unique_ptr<ExportSource> OpenChanges(KVStore& store, const DatasetSpec& spec, std::string since,
                                          size_t most) {
  return std::make_unique<ChangesSource>(store, spec, std::move(since), most);
}

}  // namespace kvstore::exports
