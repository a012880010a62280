#include "shardmap/shard_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace kvstore {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxHostBytes = 253;  // the longest DNS name
constexpr int kMaxDepth = 8;           // a valid map nests 3 deep

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError("shard map: " + fmt::format(format, std::forward<Args>(args)...));
}

/// Parses JSON, and refuses an object that has a field twice, which the library would accept, and deep
/// nesting.
absl::StatusOr<Json> ParseStrictly(std::string_view text) {
  std::vector<std::set<std::string>> open;  // the fields of the objects that are open
  std::string twice;
  bool deep = false;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) deep = true;
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, check);
  } catch (const Json::exception& error) {
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    return Invalid("not JSON: {}", what);
  }
  if (!twice.empty()) return Invalid("the field '{}' is given twice", twice);
  if (deep) return Invalid("nests more than {} deep", kMaxDepth);
  return json;
}

bool IsHostChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

/// "NAME" or "NAME:PORT".
std::optional<Host> ParseHost(std::string_view text) {
  Host host;
  const size_t colon = text.find(':');
  host.name = text.substr(0, colon);
  if (host.name.empty() || host.name.size() > kMaxHostBytes) return std::nullopt;
  if (!std::all_of(host.name.begin(), host.name.end(), IsHostChar)) return std::nullopt;
  if (colon == std::string_view::npos) return host;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), host.port);
  if (error != std::errc() || end != port.data() + port.size() || host.port == 0) return std::nullopt;
  return host;
}

absl::StatusOr<Host> ReadHost(const Json& entry, size_t index, const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end()) return Invalid("entry {}: {}: is missing", index, field);
  if (!found->is_string()) return Invalid("entry {}: {}: must be a string", index, field);
  const auto host = ParseHost(found->get_ref<const std::string&>());
  if (!host) {
    return Invalid("entry {}: {}: {} is not a host name with an optional :port (1..65535)", index, field,
                   found->dump());
  }
  return *host;
}

absl::StatusOr<uint32_t> ReadShard(const Json& json, size_t index) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > ShardMap::kMaxShard) {
    return Invalid("entry {}: range: {} is not a shard number, 0..{}", index, json.dump(),
                   ShardMap::kMaxShard);
  }
  return json.get<uint32_t>();
}

absl::StatusOr<ShardRange> ReadEntry(const Json& entry, size_t index) {
  if (!entry.is_object()) return Invalid("entry {}: must be an object, not {}", index, entry.type_name());
  for (const auto& [field, unused] : entry.items()) {
    if (field != "range" && field != "master" && field != "slave") {
      return Invalid("entry {}: {}: unknown field; an entry has range, master and slave", index, field);
    }
  }
  const auto range = entry.find("range");
  if (range == entry.end()) return Invalid("entry {}: range: is missing", index);
  if (!range->is_array() || range->size() != 2) {
    return Invalid("entry {}: range: must be [first, last]", index);
  }
  const auto first = ReadShard((*range)[0], index);
  if (!first.ok()) return first.status();
  const auto last = ReadShard((*range)[1], index);
  if (!last.ok()) return last.status();
  if (*first > *last) return Invalid("entry {}: range: [{}, {}] is reversed", index, *first, *last);
  auto master = ReadHost(entry, index, "master");
  if (!master.ok()) return master.status();
  auto slave = ReadHost(entry, index, "slave");
  if (!slave.ok()) return slave.status();
  return ShardRange{*first, *last, *std::move(master), *std::move(slave)};
}

}  // namespace

std::string Host::ToString() const { return port == kDefaultPort ? name : fmt::format("{}:{}", name, port); }

absl::StatusOr<Host> Host::Parse(std::string_view text) {
  auto host = ParseHost(text);
  if (host) return *std::move(host);
  return absl::InvalidArgumentError(
      fmt::format("host: '{}' is not a host name with an optional :port (1..65535)", text));
}

ShardMap::ShardMap(std::vector<ShardRange> ranges) : ranges_(std::move(ranges)) {
  for (const ShardRange& range : ranges_) open_shards_ += range.last - range.first + 1;
}

absl::StatusOr<ShardMap> ShardMap::Parse(std::string_view text) {
  if (text.size() > kMaxTextBytes) return Invalid("{} bytes, the limit is {}", text.size(), kMaxTextBytes);
  const auto json = ParseStrictly(text);
  if (!json.ok()) return json.status();
  if (!json->is_array()) return Invalid("must be an array of entries, not {}", json->type_name());
  std::vector<ShardRange> ranges;
  ranges.reserve(json->size());
  for (size_t i = 0; i < json->size(); ++i) {
    auto range = ReadEntry((*json)[i], i);
    if (!range.ok()) return range.status();
    ranges.push_back(*std::move(range));
  }
  return Create(std::move(ranges));
}

absl::StatusOr<ShardMap> ShardMap::Create(std::vector<ShardRange> ranges) {
  if (ranges.empty()) return Invalid("has no entries");
  for (size_t i = 0; i < ranges.size(); ++i) {
    const ShardRange& range = ranges[i];
    if (range.first > range.last || range.last > kMaxShard) {
      return Invalid("entry {}: range: [{}, {}] is not within 0..{}", i, range.first, range.last, kMaxShard);
    }
    if (range.master == range.slave)
      return Invalid("entry {}: slave: {} is the master too", i, range.slave.ToString());
    if (i > 0 && range.first <= ranges[i - 1].last) {
      return Invalid(
          "entry {}: range: [{}, {}] begins before the end of the entry before it, [{}, {}]; ranges are in "
          "order and do not overlap",
          i, range.first, range.last, ranges[i - 1].first, ranges[i - 1].last);
    }
  }
  return ShardMap(std::move(ranges));
}

const ShardRange* ShardMap::Find(uint32_t shard) const {
  const auto behind =
      std::upper_bound(ranges_.begin(), ranges_.end(), shard,
                       [](uint32_t wanted, const ShardRange& range) { return wanted < range.first; });
  if (behind == ranges_.begin()) return nullptr;
  const ShardRange& range = *std::prev(behind);
  return shard <= range.last ? &range : nullptr;
}

std::string ShardMap::ToJson() const {
  std::string text = "[";
  for (const ShardRange& range : ranges_) {
    text += fmt::format("{}{{\"range\": [{}, {}], \"master\": \"{}\", \"slave\": \"{}\"}}",
                        text.size() > 1 ? ",\n " : "", range.first, range.last, range.master.ToString(),
                        range.slave.ToString());
  }
  return text + "]\n";
}

}  // namespace kvstore
