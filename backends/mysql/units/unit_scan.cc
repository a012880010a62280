#include "backends/mysql/units/unit_scan.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvstore::mysql {
namespace {

/// A page of merged streams has up to so many units, and about so many bytes.
constexpr size_t kPageUnits = 1000;
constexpr size_t kPageBytes = size_t{1} << 20;
/// When a stream has run empty, all that have fewer units than this are filled, so that hosts work in
/// parallel.
constexpr size_t kFew = 1000;
constexpr auto kLater = [](auto* a, auto* b) { return b->front().key < a->front().key; };

}  // namespace

MySqlUnitScan::MySqlUnitScan(ShardReader reader, const std::vector<uint32_t>& shards, const UnitRange& range,
                             bool merged)
    : reader_(std::move(reader)), end_(range.end), merged_(merged && shards.size() > 1) {
  for (const uint32_t shard : shards) streams_.push_back({.shard = shard, .from = range.start});
}

absl::Status MySqlUnitScan::Fill(Stream& stream) {
  auto list = reader_.list(stream.shard, stream.from, end_);
  if (!list.ok()) return list.status();
  stream.listed.erase(stream.listed.begin(), stream.listed.begin() + static_cast<ptrdiff_t>(stream.at));
  stream.at = 0;
  stream.from = list->next;
  stream.done = list->next.empty();
  for (Unit& unit : list->units) {
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
  std::vector<Stream*> few;
  std::vector<uint32_t> shards;
  for (Stream& stream : streams_) {
    if (stream.done || stream.size() >= kFew) continue;
    few.push_back(&stream);
    shards.push_back(stream.shard);
  }
  std::vector<absl::Status> statuses(few.size());
  reader_.for_each(shards, [&](size_t i) {
    do {
      statuses[i] = Fill(*few[i]);
    } while (statuses[i].ok() && few[i]->size() == 0 && !few[i]->done);
  });
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  heap_.clear();
  for (Stream& stream : streams_) {
    if (stream.size() > 0) heap_.push_back(&stream);
  }
  std::make_heap(heap_.begin(), heap_.end(), kLater);
  lacks_ = false;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Unit>> MySqlUnitScan::Next() {
  std::vector<Unit> page;
  size_t bytes = 0;
  const auto take = [&](Stream& stream) {
    Unit& unit = stream.front();
    bytes += unit.key.size();
    for (const Cell& cell : unit.cells) bytes += cell.value.size();
    page.push_back(std::move(unit));
    ++stream.at;
  };
  if (!merged_) {
    // A list is returned whole, as it was read: no unit waits for the next call and grows stale.
    while (page.empty() && current_ < streams_.size()) {
      Stream& stream = streams_[current_];
      if (stream.size() > 0) {
        while (stream.size() > 0) take(stream);
      } else if (stream.done) {
        ++current_;
      } else if (auto status = Fill(stream); !status.ok()) {
        return status;
      }
    }
    return page;
  }
  while (page.size() < kPageUnits && bytes < kPageBytes) {
    if (lacks_) {
      if (auto status = FillEmpty(); !status.ok()) return status;
    }
    if (heap_.empty()) break;
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    Stream& least = *heap_.back();
    take(least);
    if (least.size() > 0) {
      std::push_heap(heap_.begin(), heap_.end(), kLater);
    } else {
      heap_.pop_back();
      lacks_ = !least.done;
    }
  }
  return page;
}

}  // namespace kvstore::mysql
