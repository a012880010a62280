#include "backends/mysql/unit_scan.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvstore::mysql {
namespace {

constexpr size_t kPageUnits = 1000;
constexpr size_t kPageBytes = size_t{1} << 20;
/// Streams with fewer units are filled when another one has run empty, so that hosts work in parallel.
constexpr size_t kFew = 1000;

}  // namespace

MySqlUnitScan::MySqlUnitScan(MySqlEndpoint& endpoint, const std::vector<uint32_t>& shards,
                             const UnitRange& range, uint64_t as_of)
    : endpoint_(endpoint),
      end_(range.end),
      as_of_(as_of),
      merged_(endpoint.kind_.shape == Shape::kRows && shards.size() > 1) {
  for (const uint32_t shard : shards) streams_.push_back({.shard = shard, .from = range.start});
}

absl::Status MySqlUnitScan::Fill(Stream& stream) {
  UnitList list;
  absl::Status status = endpoint_.OnTable(
      stream.shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
        list = ListUnits(connection, table, endpoint_.kind_, Visible(endpoint_.base_, as_of_), stream.from,
                         end_);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  stream.from = list.next;
  stream.done = list.next.empty();
  for (Unit& unit : list.units) {
    if (!end_.empty() && unit.key >= end_) {
      stream.done = true;
      break;
    }
    stream.listed.push_back(std::move(unit));
  }
  if (!end_.empty() && !stream.done && stream.from >= end_) stream.done = true;
  return absl::OkStatus();
}

absl::Status MySqlUnitScan::FillEmpty() {
  const bool needed = std::any_of(streams_.begin(), streams_.end(),
                                  [](const Stream& stream) { return stream.listed.empty() && !stream.done; });
  if (!needed) return absl::OkStatus();
  std::vector<Stream*> few;
  std::vector<uint32_t> shards;
  for (Stream& stream : streams_) {
    if (stream.done || stream.listed.size() >= kFew) continue;
    few.push_back(&stream);
    shards.push_back(stream.shard);
  }
  std::vector<absl::Status> statuses(few.size());
  endpoint_.fleet_->ForEach(endpoint_.space(), shards, [&](size_t i) {
    do {
      statuses[i] = Fill(*few[i]);
    } while (statuses[i].ok() && few[i]->listed.empty() && !few[i]->done);
  });
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Unit>> MySqlUnitScan::Next() {
  std::vector<Unit> page;
  size_t bytes = 0;
  const auto take = [&](Stream& stream) {
    Unit& unit = stream.listed.front();
    bytes += unit.key.size();
    for (const Cell& cell : unit.cells) bytes += cell.value.size();
    page.push_back(std::move(unit));
    stream.listed.pop_front();
  };
  if (!merged_) {
    // A list as it was read: nothing that grows old waits for the next call.
    while (page.empty() && current_ < streams_.size()) {
      Stream& stream = streams_[current_];
      if (!stream.listed.empty()) {
        while (!stream.listed.empty()) take(stream);
      } else if (stream.done) {
        ++current_;
      } else if (auto status = Fill(stream); !status.ok()) {
        return status;
      }
    }
    return page;
  }
  while (page.size() < kPageUnits && bytes < kPageBytes) {
    if (auto status = FillEmpty(); !status.ok()) return status;
    Stream* least = nullptr;
    for (Stream& stream : streams_) {
      if (stream.listed.empty()) continue;
      if (least == nullptr || stream.listed.front().key < least->listed.front().key) least = &stream;
    }
    if (least == nullptr) break;
    take(*least);
  }
  return page;
}

}  // namespace kvstore::mysql
