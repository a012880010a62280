#include "server/resp/commands/mapping_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backend_api/marker.h"
#include "backend_api/validate.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/rows.h"

namespace kvstore::server::resp {
namespace {

/// The most entries that are read, or skipped, on a thread that serves connections.
constexpr uint64_t kEntriesHere = 1'000;
/// The entries of the first page; each further one may have ten times as many, up to kMaxListEntries.
constexpr uint64_t kFirstPage = 100;

/// Returns the marker after which the wanted entries begin; empty if they begin with the first entry in the
/// chosen order.
std::string MarkerBefore(const MappingOf& mapping, const EntriesWanted& wanted) {
  if (wanted.descending) {
    if (wanted.max >= kMaxTimestamp) return "";
    return SealMappingMarker(mapping.incarnation, mapping.from, true, {.to = 0, .sequence = wanted.max + 1});
  }
  if (wanted.min == 0) return "";
  return SealMappingMarker(mapping.incarnation, mapping.from, false,
                           {.to = kMaxId, .sequence = wanted.min - 1});
}

}  // namespace

absl::StatusOr<MappingOf> FindMapping(Router& router, std::string_view key) {
  const auto id = ParseIdKey(key);
  if (!id.ok()) return id.status();
  if (auto status = ValidateId("key", id->id); !status.ok()) return status;
  const auto spec = router.GetDataset(id->dataset);
  if (!spec.ok()) return spec.status();
  if (spec->shape != Shape::kMappings) {
    return WrongTypeError(fmt::format("dataset '{}' holds {}, and this command is for {}", spec->name,
                                      Name(spec->shape), Name(Shape::kMappings)));
  }
  return MappingOf{.dataset = id->dataset, .from = id->id, .incarnation = spec->incarnation};
}

absl::StatusOr<std::optional<uint64_t>> FindSequence(Router& router, const MappingOf& mapping, uint64_t to) {
  MappingScanOptions options{
      .limit = 1, .marker = SealMappingScanMarker(mapping.incarnation, {.from = mapping.from, .to = to})};
  for (;;) {
    auto page =
        router.ScanMappings(mapping.dataset, {.start = mapping.from, .end = mapping.from + 1}, options);
    if (!page.ok()) return page.status();
    if (!page->entries.empty()) {
      const ScannedMapping& entry = page->entries.front();
      return entry.to == to ? std::optional<uint64_t>(entry.sequence) : std::nullopt;
    }
    if (page->marker.empty()) return std::optional<uint64_t>();
    options.marker = std::move(page->marker);
  }
}

absl::StatusOr<std::vector<MappingEntry>> ListEntries(Router& router, const MappingOf& mapping,
                                                      const EntriesWanted& wanted, bool here) {
  if (here && (wanted.offset > kEntriesHere || wanted.count > kEntriesHere)) return TooLongHereError();
  std::vector<MappingEntry> entries;
  MappingListOptions options{.order = wanted.descending ? MappingListOptions::Order::kDescending
                                                        : MappingListOptions::Order::kAscending,
                             .marker = MarkerBefore(mapping, wanted)};
  uint64_t skip = wanted.offset;
  uint64_t page_entries = kFirstPage;
  // The store skips entries itself, but only from the first entry on.
  if (options.marker.empty()) options.offset = std::exchange(skip, 0);
  while (entries.size() < wanted.count) {
    const uint64_t left = wanted.count - entries.size();
    const uint64_t most =
        std::min<uint64_t>(left, kMaxListEntries) + std::min<uint64_t>(skip, kMaxListEntries);
    options.limit = static_cast<uint32_t>(std::min(most, page_entries));
    page_entries = std::min<uint64_t>(10 * page_entries, kMaxListEntries);
    auto page = router.ListMapping(mapping.dataset, mapping.from, options);
    if (!page.ok()) return page.status();
    for (const MappingEntry& entry : page->entries) {
      const bool beyond = wanted.descending ? entry.sequence < wanted.min : entry.sequence > wanted.max;
      if (beyond || entries.size() == wanted.count) return entries;
      if (skip > 0) {
        --skip;
        continue;
      }
      if (entries.size() == kMaxAnswerElements) return TooLargeAnswerError();
      entries.push_back(entry);
    }
    if (page->marker.empty()) break;
    options.offset = 0;
    options.marker = std::move(page->marker);
  }
  return entries;
}

}  // namespace kvstore::server::resp
