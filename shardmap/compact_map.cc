#include "shardmap/compact_map.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"

namespace kvstore {
namespace {

using PackedJson = nlohmann::json;

/// Higher levels take longer and save nothing on lists of numbers.
constexpr int kMapLevel = 9;
/// The lists that have a number for each pair, and those that have one for each range.
constexpr std::array<const char*, 2> kPairLists = {"masters", "slaves"};
constexpr std::array<const char*, 3> kRangeLists = {"gaps", "lengths", "pairs"};
constexpr uint64_t kShardNumbers = kMaxShardNumber + 1;

template <typename... Args>
absl::Status BadPack(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError("shard map: packed: " + fmt::format(format, std::forward<Args>(args)...));
}

/// Undoes base64 and zstd.
absl::StatusOr<std::string> Inflate(std::string_view packed) {
  std::string frame;
  if (!absl::Base64Unescape(absl::string_view(packed.data(), packed.size()), &frame)) {
    return BadPack("is not base64");
  }
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return BadPack("is no zstd frame that names its size");
  }
  if (size > kMaxUnpackedMapBytes) {
    return BadPack("has {} bytes when it is unpacked, the limit is {}", size, kMaxUnpackedMapBytes);
  }
  std::string text(size, '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0) return BadPack("cannot be unpacked: {}", ZSTD_getErrorName(got));
  if (got != text.size()) return BadPack("has {} bytes where its frame names {}", got, size);
  return text;
}

/// Reads an object of lists. Whatever is no list, or is nested deeper, is dropped while it is read. Not by a
/// callback of the library's, which would look for what was dropped among all before it in the list.
class ListReader : public nlohmann::json_sax<PackedJson> {
 public:
  /// The object; null if the text is none.
  PackedJson Take() && { return std::move(lists_); }

  bool null() override { return Keep(nullptr); }
  bool boolean(bool value) override { return Keep(value); }
  bool number_integer(number_integer_t value) override { return Keep(value); }
  bool number_unsigned(number_unsigned_t value) override { return Keep(value); }
  bool number_float(number_float_t value, const string_t&) override { return Keep(value); }
  bool string(string_t& value) override { return Keep(std::move(value)); }
  bool binary(binary_t& value) override { return Keep(std::move(value)); }
  bool key(string_t& name) override {
    if (depth_ == 1) name_ = std::move(name);
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 0) lists_ = PackedJson::object();
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return false;
    if (depth_ == 1) list_ = &(lists_[name_] = PackedJson::array());
    ++depth_;
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    lists_ = nullptr;
    return false;
  }

 private:
  bool Close() {
    if (--depth_ == 1) list_ = nullptr;
    return true;
  }
  template <typename Value>
  bool Keep(Value&& value) {
    if (depth_ == 2 && list_ != nullptr) list_->push_back(std::forward<Value>(value));
    return true;
  }

  PackedJson lists_;
  std::string name_;
  size_t depth_ = 0;
  PackedJson* list_ = nullptr;  // the list that is open
};

absl::StatusOr<PackedJson> ParseLists(const std::string& text) {
  ListReader reader;
  PackedJson::sax_parse(text, &reader);
  PackedJson json = std::move(reader).Take();
  if (!json.is_object()) return BadPack("is not a JSON object");
  for (const char* const name : {"hosts", "masters", "slaves", "gaps", "lengths", "pairs"}) {
    if (!json.contains(name)) return BadPack("{}: must be a list", name);
  }
  return json;
}

absl::StatusOr<std::vector<Host>> TakeHosts(const PackedJson& list) {
  // Each range has two hosts at most that no other one has.
  constexpr size_t kMostHosts = 2 * kShardNumbers;
  if (list.size() > kMostHosts) return BadPack("hosts: {} of them, the limit is {}", list.size(), kMostHosts);
  std::vector<Host> hosts;
  hosts.reserve(list.size());
  for (const PackedJson& one : list) {
    if (!one.is_string()) return BadPack("hosts: entry {} is not a string", hosts.size());
    auto host = Host::Parse(one.get_ref<const std::string&>());
    if (!host.ok()) return BadPack("hosts: entry {}: {}", hosts.size(), std::string(host.status().message()));
    hosts.push_back(*std::move(host));
  }
  return hosts;
}

/// Reads lists of numbers of the same length: returns the numbers of each place.
template <size_t kCount>
absl::StatusOr<std::vector<std::array<uint64_t, kCount>>> TakeNumbers(
    const PackedJson& json, const std::array<const char*, kCount>& names) {
  const size_t length = json[names[0]].size();
  if (length > kShardNumbers) {
    return BadPack("{}: {} entries, the limit is {}", names[0], length, kShardNumbers);
  }
  std::vector<std::array<uint64_t, kCount>> numbers(length);
  for (size_t k = 0; k < kCount; ++k) {
    const PackedJson& list = json[names[k]];
    if (list.size() != length) {
      return BadPack("{} has {} entries, and {} has {}", names[k], list.size(), names[0], length);
    }
    for (size_t i = 0; i < length; ++i) {
      // Sums of such numbers cannot overflow; whether they are shards and hosts is for the caller to check.
      if (!list[i].is_number_unsigned() || list[i].template get<uint64_t>() > UINT32_MAX) {
        return BadPack("{}: entry {} is not a number of 0..{}", names[k], i, UINT32_MAX);
      }
      numbers[i][k] = list[i].template get<uint64_t>();
    }
  }
  return numbers;
}

absl::StatusOr<std::vector<ShardRange>> TakeRanges(const PackedJson& json, const std::vector<Host>& hosts) {
  const auto pairs = TakeNumbers(json, kPairLists);
  if (!pairs.ok()) return pairs.status();
  for (size_t i = 0; i < pairs->size(); ++i) {
    const auto [master, slave] = (*pairs)[i];
    if (master < hosts.size() && slave < hosts.size()) continue;
    return BadPack("masters, slaves: entry {}: has host {}, and there are {} hosts", i,
                   std::max(master, slave), hosts.size());
  }
  const auto numbers = TakeNumbers(json, kRangeLists);
  if (!numbers.ok()) return numbers.status();
  std::vector<ShardRange> ranges;
  ranges.reserve(numbers->size());
  uint64_t next_shard = 0;  // the first one after the ranges so far
  uint64_t next_pair = 0;   // the first one that no range so far has named
  for (size_t i = 0; i < numbers->size(); ++i) {
    const auto [gap, length, named] = (*numbers)[i];
    if (length == 0 || next_shard + gap + length > kShardNumbers) {
      return BadPack("entry {}: {} shards after a gap of {} are not within 0..{}", i, length, gap,
                     kMaxShardNumber);
    }
    const uint64_t pair = named == 0 ? next_pair++ : named - 1;
    if (pair >= pairs->size()) {
      return BadPack("entry {}: has pair {}, and there are {} pairs", i, pair + 1, pairs->size());
    }
    const uint64_t first = next_shard + gap;
    next_shard = first + length;
    const auto [master, slave] = (*pairs)[pair];
    ranges.push_back(
        {static_cast<uint32_t>(first), static_cast<uint32_t>(next_shard - 1), hosts[master], hosts[slave]});
  }
  return ranges;
}

}  // namespace

std::string PackRanges(std::span<const ShardRange> ranges) {
  std::map<Host, uint32_t> places;
  for (const ShardRange& range : ranges) {
    places.emplace(range.master, 0);
    places.emplace(range.slave, 0);
  }
  std::vector<std::string> hosts;
  hosts.reserve(places.size());
  for (auto& [host, place] : places) {
    place = static_cast<uint32_t>(hosts.size());
    hosts.push_back(host.ToString());
  }
  std::array<std::vector<uint32_t>, kPairLists.size()> pair_lists;
  std::array<std::vector<uint32_t>, kRangeLists.size()> range_lists;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pairs;  // their places, from 1 on
  uint32_t next = 0;
  for (const ShardRange& range : ranges) {
    const std::pair<uint32_t, uint32_t> hosts_of{places[range.master], places[range.slave]};
    const auto [pair, is_new] = pairs.try_emplace(hosts_of, static_cast<uint32_t>(pairs.size() + 1));
    if (is_new) {
      pair_lists[0].push_back(hosts_of.first);
      pair_lists[1].push_back(hosts_of.second);
    }
    range_lists[0].push_back(range.first - next);
    range_lists[1].push_back(range.last - range.first + 1);
    range_lists[2].push_back(is_new ? 0 : pair->second);
    next = range.last + 1;
  }
  PackedJson json = {{"hosts", hosts}};
  for (size_t k = 0; k < kPairLists.size(); ++k) json[kPairLists[k]] = pair_lists[k];
  for (size_t k = 0; k < kRangeLists.size(); ++k) json[kRangeLists[k]] = range_lists[k];
  const std::string text = json.dump();
  if (text.size() > kMaxUnpackedMapBytes) return "";
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), kMapLevel));
  return absl::Base64Escape(frame);
}

absl::StatusOr<std::vector<ShardRange>> UnpackRanges(std::string_view packed) {
  const auto text = Inflate(packed);
  if (!text.ok()) return text.status();
  const auto json = ParseLists(*text);
  if (!json.ok()) return json.status();
  const auto hosts = TakeHosts((*json)["hosts"]);
  if (!hosts.ok()) return hosts.status();
  return TakeRanges(*json, *hosts);
}

}  // namespace kvstore
