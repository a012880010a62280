#include "router/read_taps.h"

#include <utility>

#include "backend_api/unit_key.h"
#include "base/random_number.h"

namespace kvstore {

ReadTaps::ReadTaps() : taps_(std::make_shared<const Taps>()) {}

void ReadTaps::Store(Taps taps) {
  const bool any = !taps.empty();
  taps_.Store(std::make_shared<const Taps>(std::move(taps)));
  any_ = any;
}

void ReadTaps::Open(std::string_view dataset, uint32_t share, std::shared_ptr<ReadTap> tap) {
  const MutexLock lock(mutex_);
  Taps taps = *taps_.Load();
  taps[std::string(dataset)] = {.share = share, .tap = std::move(tap)};
  Store(std::move(taps));
}

void ReadTaps::Close(std::string_view dataset) {
  const MutexLock lock(mutex_);
  Taps taps = *taps_.Load();
  taps.erase(std::string(dataset));
  Store(std::move(taps));
}

std::shared_ptr<ReadTap> ReadTaps::Choose(std::string_view dataset) const {
  const auto taps = taps_.Load();
  const auto found = taps->find(dataset);
  if (found == taps->end() || RandomNumber() % kAll >= found->second.share) return nullptr;
  return found->second.tap;
}

void ReadTaps::TellRow(std::string_view dataset, std::string_view row, const ReadOptions& options,
                       const std::vector<Item>& items) const {
  const auto tap = Choose(dataset);
  if (!tap) return;
  std::vector<std::string> units;
  // Columns that were asked for by name are told also where there is nothing.
  if (options.columns) {
    for (const std::string& column : *options.columns) {
      if (units.size() < kMostUnits) units.push_back(RowUnitKey(row, column));
    }
  } else {
    for (const Item& item : items) {
      if (units.size() < kMostUnits) units.push_back(RowUnitKey(row, item.column));
    }
  }
  if (!units.empty()) tap->Offer(std::move(units));
}

void ReadTaps::TellObject(std::string_view dataset, uint64_t id) const {
  if (const auto tap = Choose(dataset)) tap->Offer({ObjectUnitKey(id)});
}

void ReadTaps::TellMapping(std::string_view dataset, uint64_t from,
                           const std::vector<MappingEntry>& entries) const {
  const auto tap = Choose(dataset);
  if (!tap) return;
  std::vector<std::string> units;
  for (const MappingEntry& entry : entries) {
    if (units.size() < kMostUnits) units.push_back(MappingUnitKey(from, entry.to));
  }
  if (!units.empty()) tap->Offer(std::move(units));
}

}  // namespace kvstore
