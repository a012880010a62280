#include "reports/filter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

absl::StatusOr<uint32_t> KeyOf(const ReportInfo& info, std::string_view field, const std::string& name) {
  const auto key = info.KeyNumber(name);
  if (key) return *key;
  return absl::InvalidArgumentError(
      fmt::format("{}: report '{}' has no segment key '{}'", field, info.name, name));
}

/// Whether two ascending lists have anything in common.
bool Intersect(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  // The list of a filter is short, that of a chunk may be long.
  if (a.size() > b.size()) std::swap(a, b);
  return std::any_of(a.begin(), a.end(),
                     [&](uint32_t id) { return std::binary_search(b.begin(), b.end(), id); });
}

constexpr uint32_t kDefaultOnly[] = {0};

}  // namespace

absl::StatusOr<FilterSet> FilterSet::Make(const Metadata& metadata, const ReportInfo& info,
                                          const Query& query) {
  FilterSet set;
  for (const std::string& name : query.group_by) {
    KV_ASSIGN_OR_RETURN(const uint32_t key, KeyOf(info, "group_by", name));
    if (std::find(set.group_keys_.begin(), set.group_keys_.end(), key) != set.group_keys_.end()) {
      return absl::InvalidArgumentError(fmt::format("group_by: '{}' is named twice", name));
    }
    set.group_keys_.push_back(key);
  }
  if (query.filters.size() > query.limits.max_filters) {
    return absl::InvalidArgumentError(
        fmt::format("filters: {} filters, the limit is {}", query.filters.size(), query.limits.max_filters));
  }
  // The values of all filters are looked up together, key by key.
  std::map<uint32_t, std::vector<std::string>> wanted;
  for (const QueryFilter& filter : query.filters) {
    for (const auto& [name, values] : filter.where) {
      KV_ASSIGN_OR_RETURN(const uint32_t key, KeyOf(info, "filters", name));
      if (values) wanted[key].insert(wanted[key].end(), values->begin(), values->end());
    }
  }
  std::map<uint32_t, std::map<std::string, uint32_t>> known;
  for (const auto& [key, values] : wanted) {
    KV_ASSIGN_OR_RETURN(const auto ids, metadata.FindValues(info.name, key, values));
    for (size_t i = 0; i < values.size(); ++i) {
      if (ids[i]) known[key][values[i]] = *ids[i];
    }
  }
  for (const QueryFilter& filter : query.filters) {
    Filter& compiled = set.filters_.emplace_back();
    for (const auto& [name, values] : filter.where) {
      if (!values) continue;
      KeyFilter key_filter{.key = *info.KeyNumber(name)};
      for (const std::string& value : *values) {
        const auto& ids = known[key_filter.key];
        // A value that no point ever had matches nothing.
        if (const auto id = ids.find(value); id != ids.end()) key_filter.ids.push_back(id->second);
      }
      std::sort(key_filter.ids.begin(), key_filter.ids.end());
      key_filter.ids.erase(std::unique(key_filter.ids.begin(), key_filter.ids.end()), key_filter.ids.end());
      compiled.push_back(std::move(key_filter));
    }
  }
  if (set.filters_.empty()) set.filters_.emplace_back();
  set.IndexFilters();
  return set;
}

std::vector<uint32_t> FilterSet::KeysUsed() const {
  std::vector<uint32_t> keys(group_keys_.begin(), group_keys_.end());
  for (const KeyIndex& index : indexes_) keys.push_back(index.key);
  return keys;
}

bool FilterSet::MayMatch(const ChunkDirectory& directory) const {
  return std::any_of(filters_.begin(), filters_.end(), [&](const Filter& filter) {
    return std::all_of(filter.begin(), filter.end(), [&](const KeyFilter& key_filter) {
      // A chunk that is older than the key has its default.
      const bool has_key = key_filter.key < directory.segment_values.size();
      const std::span<const uint32_t> values =
          has_key ? std::span<const uint32_t>(directory.segment_values[key_filter.key])
                  : std::span<const uint32_t>(kDefaultOnly);
      return Intersect(key_filter.ids, values);
    });
  });
}

void FilterSet::IndexFilters() {
  const size_t words = (filters_.size() + 63) / 64;
  std::map<uint32_t, KeyIndex> by_key;
  for (const Filter& filter : filters_) {
    for (const KeyFilter& key_filter : filter) by_key[key_filter.key].key = key_filter.key;
  }
  for (auto& [key, index] : by_key) {
    index.any.assign(words, ~uint64_t{0});
    for (size_t i = 0; i < filters_.size(); ++i) {
      for (const KeyFilter& key_filter : filters_[i]) {
        if (key_filter.key == key) index.any[i / 64] &= ~(uint64_t{1} << (i % 64));
      }
    }
    for (size_t i = 0; i < filters_.size(); ++i) {
      for (const KeyFilter& key_filter : filters_[i]) {
        if (key_filter.key != key) continue;
        for (const uint32_t id : key_filter.ids) {
          auto& bits = index.by_id.try_emplace(id, index.any).first->second;
          bits[i / 64] |= uint64_t{1} << (i % 64);
        }
      }
    }
    indexes_.push_back(std::move(index));
  }
}

void FilterSet::Match(std::span<const uint32_t> segments, NumberList& matched) const {
  const size_t words = (filters_.size() + 63) / 64;
  for (size_t word = 0; word < words; ++word) {
    const size_t last = filters_.size() - word * 64;
    uint64_t bits = last >= 64 ? ~uint64_t{0} : (uint64_t{1} << last) - 1;
    for (const KeyIndex& index : indexes_) {
      const auto found = index.by_id.find(segments[index.key]);
      bits &= (found == index.by_id.end() ? index.any : found->second)[word];
    }
    for (; bits != 0; bits &= bits - 1) {
      matched.push_back(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
}

void FilterSet::Group(std::span<const uint32_t> segments, NumberList& group) const {
  group.clear();
  for (const uint32_t key : group_keys_) group.push_back(segments[key]);
}

}  // namespace kvstore::reports
