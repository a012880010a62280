#include <fmt/format.h>

#include <string>
#include <utility>

#include "backend_api/marker.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "router/router.h"

/// KVStore::ReadChanges: units of a backend as changes of a dataset.
namespace kvstore {
namespace {

absl::StatusOr<Change> ToChange(const DatasetSpec& spec, UnitChange& change) {
  Change result{
      .token = SealChangesToken(spec.incarnation, change.position), .at_ms = change.at_ms, .what = {}};
  Unit& unit = change.unit;
  const std::string_view key = unit.key;
  switch (spec.shape) {
    case Shape::kRows: {
      auto parsed = ParseRowUnitKey(key);
      if (!parsed) break;
      result.what = RowChange{.row = std::move(parsed->row),
                              .column = std::move(parsed->column),
                              .cells = std::move(unit.cells),
                              .more = change.more};
      return result;
    }
    case Shape::kObjects: {
      if (key.size() != sizeof(uint64_t)) break;
      ObjectChange object{.id = ReadBigEndian<uint64_t>(key), .data = {}};
      if (!unit.cells.empty()) {
        object.timestamp = unit.cells[0].timestamp;
        object.data = std::move(unit.cells[0].value);
      }
      result.what = std::move(object);
      return result;
    }
    case Shape::kMappings: {
      if (key.size() != 2 * sizeof(uint64_t)) break;
      MappingChange mapping{.from = ReadBigEndian<uint64_t>(key),
                            .to = ReadBigEndian<uint64_t>(key.substr(sizeof(uint64_t))),
                            .sequence = {}};
      if (!unit.cells.empty()) {
        if (unit.cells[0].value.size() != sizeof(uint64_t)) break;
        mapping.sequence = ReadBigEndian<uint64_t>(unit.cells[0].value);
      }
      result.what = mapping;
      return result;
    }
  }
  return absl::DataLossError(fmt::format("the key of a change of '{}' does not decode", spec.name));
}

/// Returns the backend's position of `from`.
absl::StatusOr<std::string> PositionOf(const ServedDataset& served, std::string_view from) {
  if (from == kChangesFromBegin) return served.backend->StartChanges(served.spec, ChangesFrom::kBegin);
  if (from == kChangesFromNow) return served.backend->StartChanges(served.spec, ChangesFrom::kNow);
  return OpenChangesToken(served.spec.incarnation, from);
}

}  // namespace

absl::StatusOr<ChangePage> Router::ReadChanges(std::string_view dataset, std::string_view from,
                                               const ChangeOptions& options) {
  const auto check = [&](const ServedDataset& served) -> absl::Status {
    if (options.limit < 1 || options.limit > kMaxListEntries) {
      return absl::InvalidArgumentError(
          fmt::format("limit: {} changes, out of range 1..{}", options.limit, kMaxListEntries));
    }
    if (options.max_bytes < 1 || options.max_bytes > kMaxPageBytes) {
      return absl::InvalidArgumentError(
          fmt::format("max_bytes: {}, out of range 1..{}", options.max_bytes, kMaxPageBytes));
    }
    if (served.spec.keep_changes_ms != 0) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "dataset: the changes of '{0}' are not kept; kv dataset alter {0} --keep-changes-ms 1d begins it",
        served.spec.name));
  };
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(dataset, (*found)->spec.shape, check,
               [&](const ServedDataset& served) -> absl::StatusOr<ChangePage> {
                 const auto position = PositionOf(served, from);
                 if (!position.ok()) return position.status();
                 auto read = served.backend->ReadChanges(
                     served.spec, *position, {.changes = options.limit, .bytes = options.max_bytes});
                 if (!read.ok()) return read.status();
                 ChangePage page{.changes = {},
                                 .token = SealChangesToken(served.spec.incarnation, read->position),
                                 .complete_until_ms = read->complete_until_ms};
                 page.changes.reserve(read->changes.size());
                 for (UnitChange& unit : read->changes) {
                   auto change = ToChange(served.spec, unit);
                   if (!change.ok()) return change.status();
                   page.changes.push_back(*std::move(change));
                 }
                 return page;
               });
}

}  // namespace kvstore
