#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend_api/marker.h"
#include "backend_api/scan_budget.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/glob.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/scan.h"
#include "server/resp/commands/scan_options.h"

/// SCAN: the keys of all datasets that the caller may read, one dataset after the other by name, a part of
/// one dataset in each answer.
namespace kvstore::server::resp {
namespace {

constexpr char kCursorOf[] = "scan";
/// Large rows are read in pieces of this size, of which the first one gives the key.
constexpr size_t kPieceBytes = size_t{64} << 10;
/// The most cells that are examined for one answer.
constexpr uint64_t kScanBudget = 20'000;
/// The most bytes of objects that are read for one answer.
constexpr size_t kObjectBytes = size_t{1} << 20;

/// Where a scan continues.
struct Place {
  std::string dataset;
  std::string marker;
  std::string last;  // the row whose pieces come next
};

/// The marker is base64, and a dataset's name has no such byte either.
constexpr char kSeparator = '\0';

std::string TextOf(const Place& place) {
  return fmt::format("{}{}{}{}{}", place.dataset, kSeparator, place.marker, kSeparator, place.last);
}

Place PlaceOf(std::string_view text) {
  Place place;
  place.dataset = text.substr(0, text.find(kSeparator));
  text.remove_prefix(place.dataset.size() + 1);
  place.marker = text.substr(0, text.find(kSeparator));
  text.remove_prefix(place.marker.size() + 1);
  place.last = text;
  return place;
}

// ---- datasets ----

/// Returns whether a dataset of this shape can have keys of a type.
bool MayHaveType(Shape shape, std::string_view type) {
  if (type.empty()) return true;
  if (type == "hash" || type == "string") return shape == Shape::kRows;
  if (type == "zset") return shape == Shape::kMappings;
  return type == "rejson-rl" && shape == Shape::kObjects;
}

/// Returns whether a pattern that begins with this text can match keys of a dataset.
bool MayMatch(std::string_view dataset, std::string_view prefix) {
  const size_t colon = prefix.find(':');
  return colon == std::string_view::npos ? dataset.starts_with(prefix) : dataset == prefix.substr(0, colon);
}

/// Returns the first dataset after `after` that a scan has to look at; nothing if there is none.
absl::StatusOr<std::optional<std::string>> NextDataset(Router& router, const Principal* principal,
                                                       const ScanArguments& scan, std::string_view after) {
  const auto specs = router.ListDatasets();
  if (!specs.ok()) return specs.status();
  const std::string prefix = LiteralPrefix(scan.pattern);
  for (const DatasetSpec& spec : *specs) {
    // The catalog's entry of a dataset without a backend cannot be read, so only its name is known.
    if (spec.name <= after || spec.backend.empty()) continue;
    if (!MayHaveType(spec.shape, scan.type) || !MayMatch(spec.name, prefix)) continue;
    if (CheckRight(principal, spec.name, Right::kRead).ok()) return std::optional<std::string>(spec.name);
  }
  return std::optional<std::string>();
}

/// Returns where a SCAN is to go on; nothing if there is no dataset. An error if its cursor is not known, or
/// if the datasets cannot be listed.
absl::StatusOr<std::optional<Place>> PlaceOfScan(Router& router, const Cursors& cursors,
                                                 const Principal* principal, std::string_view caller,
                                                 const ScanArguments& scan) {
  if (scan.cursor != 0) {
    const auto text = cursors.Find(caller, scan.cursor, kCursorOf);
    if (!text) return UnknownCursorError();
    return std::optional<Place>(PlaceOf(*text));
  }
  auto first = NextDataset(router, principal, scan, "");
  if (!first.ok()) return first.status();
  if (!*first) return std::optional<Place>();
  return std::optional<Place>(Place{.dataset = **std::move(first), .marker = {}, .last = {}});
}

// ---- keys ----

/// A part of the keys of a dataset.
struct Part {
  std::vector<std::string> keys;
  bool ended = false;
};

/// Adds the key if it matches. An error if the call must end.
absl::Status AddKey(std::string key, const ScanArguments& scan, Part& part) {
  if (auto status = CheckCall(); !status.ok()) return status;
  if (Matches(scan.pattern, key)) part.keys.push_back(std::move(key));
  return absl::OkStatus();
}

bool HasType(const ScannedRow& row, std::string_view type) {
  if (type.empty()) return true;
  const bool is_string = row.items.size() == 1 && row.items[0].column.empty() && !row.continues;
  return is_string == (type == "string");
}

absl::Status ScanRowKeys(Router& router, const ScanArguments& scan, Place& place, Part& part) {
  const auto cursor = router.ScanRows(place.dataset, {}, {.max_bytes = kPieceBytes, .marker = place.marker});
  if (!cursor.ok()) return cursor.status();
  const ScanBudget budget(kScanBudget);
  ScannedRow row;
  for (uint32_t looked = 0; looked < scan.count; ++looked) {
    const auto more = (*cursor)->Next(row);
    if (IsPaused(more.status())) break;
    if (!more.ok()) return more.status();
    if (!*more) {
      part.ended = true;
      return absl::OkStatus();
    }
    // This is a further piece of a row whose key was looked at.
    if (row.key == place.last) continue;
    place.last = row.key;
    if (!HasType(row, scan.type)) continue;
    if (auto status = AddKey(RowKey(place.dataset, row.key), scan, part); !status.ok()) return status;
  }
  place.marker = (*cursor)->marker();
  return absl::OkStatus();
}

absl::Status ScanObjectKeys(Router& router, const ScanArguments& scan, Place& place, Part& part) {
  auto page = router.ScanObjects(place.dataset, {},
                                 {.limit = scan.count, .max_bytes = kObjectBytes, .marker = place.marker});
  if (!page.ok()) return page.status();
  for (const Object& object : page->objects) {
    if (auto status = AddKey(IdKeyText(place.dataset, object.id), scan, part); !status.ok()) return status;
  }
  part.ended = page->marker.empty();
  place.marker = std::move(page->marker);
  return absl::OkStatus();
}

/// Finds the IDs that have entries, by steps from one ID to the next.
absl::Status ScanMappingKeys(Router& router, const ScanArguments& scan, uint64_t incarnation, Place& place,
                             Part& part) {
  for (uint32_t found = 0; found < scan.count; ++found) {
    auto page = router.ScanMappings(place.dataset, {}, {.limit = 1, .marker = place.marker});
    if (!page.ok()) return page.status();
    place.marker = std::move(page->marker);
    if (!page->entries.empty()) {
      const uint64_t from = page->entries.front().from;
      if (auto status = AddKey(IdKeyText(place.dataset, from), scan, part); !status.ok()) return status;
      place.marker = from == kMaxId ? "" : SealMappingScanMarker(incarnation, {.from = from + 1, .to = 0});
    }
    if (place.marker.empty()) {
      part.ended = true;
      return absl::OkStatus();
    }
    // A page that has passed many deleted entries ends without one.
    if (page->entries.empty()) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status ScanPart(StoreCall& call, const ScanArguments& scan, Place& place, Part& part) {
  if (auto status = CheckRight(call.principal, place.dataset, Right::kRead); !status.ok()) return status;
  const auto spec = call.router.GetDataset(place.dataset);
  if (absl::IsNotFound(spec.status())) {
    // The dataset was dropped after the cursor was given out.
    part.ended = true;
    return absl::OkStatus();
  }
  if (!spec.ok()) return spec.status();
  switch (spec->shape) {
    case Shape::kRows:
      return ScanRowKeys(call.router, scan, place, part);
    case Shape::kObjects:
      return ScanObjectKeys(call.router, scan, place, part);
    case Shape::kMappings:
      return ScanMappingKeys(call.router, scan, spec->incarnation, place, part);
  }
  return absl::InternalError("a dataset has an unknown shape");
}

absl::Status Scan(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto scan = ReadScanOptions(arguments.subspan(1), {.type = true});
  if (!scan.ok()) return scan.status();
  auto place = PlaceOfScan(call.router, call.cursors, call.principal, call.caller, *scan);
  if (!place.ok()) return place.status();
  Part part;
  uint64_t next = 0;
  if (*place) {
    if (auto status = ScanPart(call, *scan, **place, part); !status.ok()) return status;
    if (part.ended) {
      const auto dataset = NextDataset(call.router, call.principal, *scan, (*place)->dataset);
      if (!dataset.ok()) return dataset.status();
      **place = Place{.dataset = dataset->value_or(""), .marker = {}, .last = {}};
    }
    if (!(*place)->dataset.empty()) next = call.cursors.Add(call.caller, kCursorOf, TextOf(**place));
  }
  out.Array(2);
  out.Bulk(std::to_string(next));
  out.Array(part.keys.size());
  for (const std::string& key : part.keys) out.Bulk(key);
  return absl::OkStatus();
}

}  // namespace

std::string ScannedDataset(Router& router, const Cursors& cursors, const Principal* principal,
                           std::string_view caller, Arguments arguments) {
  const auto scan = ReadScanOptions(arguments.subspan(1), {.type = true});
  if (!scan.ok()) return "";
  const auto place = PlaceOfScan(router, cursors, principal, caller, *scan);
  return place.ok() && *place ? (*place)->dataset : "";
}

std::span<const Command> ScanCommands() {
  static constexpr std::array kCommands = {
      Command{.name = "scan",
              .arity = -2,
              .handler = StoreCommand{.carry_out = &Scan},
              .operation = Operation::kScanRows,
              .dataset = DatasetIn::kScan,
              .shape = std::nullopt,
              .keys = {},
              .group = "generic",
              .words = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
              .summary = "Returns the keys of the datasets that the caller may read, in parts"},
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
