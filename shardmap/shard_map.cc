#include "shardmap/shard_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "shardmap/compact_map.h"

namespace kvstore {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 8;                          // a valid map nests 3 deep
constexpr size_t kMaxEntries = ShardMap::kMaxShard + 1;  // each has a shard of its own at least

/// The fields of the only entry of a map in the compact form. Programs that do not know the form name the
/// first one, in the order of bytes, in their error; so it is a message.
constexpr char kNotice[] = "a compact shard map, which needs KVStore 0.1.0 or newer: upgrade this program";
constexpr char kForm[] = "form";
constexpr char kPacked[] = "packed";
constexpr char kNoticeValue[] = "kv shards get prints it as a text, kv shards set takes one";
constexpr uint64_t kFormNumber = 1;

/// ShardMap::places_ of a shard that is not open.
constexpr uint16_t kClosed = UINT16_MAX;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError("shard map: " + fmt::format(format, std::forward<Args>(args)...));
}

/// Reads a text without making values of it, and stops at the first thing that no map has: no JSON, an object
/// that has a field twice, which the library would accept, deep nesting, or too many entries.
class Checker : public nlohmann::json_sax<Json> {
 public:
  /// Returns what is wrong with the text; OK if nothing is.
  absl::Status Take() && { return std::move(found_); }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool key(string_t& name) override {
    return open_.back().insert(name).second || Fail(Invalid("the field '{}' is given twice", name));
  }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    return Fail(Invalid("not JSON: {}", what));
  }

 private:
  bool Fail(absl::Status status) {
    found_ = std::move(status);
    return false;
  }
  bool Open() {
    if (!Value()) return false;
    open_.emplace_back();
    return open_.size() <= kMaxDepth || Fail(Invalid("nests more than {} deep", kMaxDepth));
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  /// A value begins.
  bool Value() {
    if (open_.size() != 1) return true;
    return ++entries_ <= kMaxEntries || Fail(Invalid("more than {} entries", kMaxEntries));
  }

  std::vector<std::set<std::string>> open_;  // the fields so far of what is open; an array has none
  size_t entries_ = 0;
  absl::Status found_;
};

/// Parses JSON that the checker accepts. Not with a callback of the library's: after each object that looks
/// for values to drop among all before it in its array, so that a text of a few MiB would take hours.
absl::StatusOr<Json> ParseStrictly(std::string_view text) {
  Checker checker;
  Json::sax_parse(text, &checker);
  if (absl::Status status = std::move(checker).Take(); !status.ok()) return status;
  return Json::parse(text);
}

absl::StatusOr<Host> ReadHost(const Json& entry, size_t index, const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end()) return Invalid("entry {}: {}: is missing", index, field);
  if (!found->is_string()) return Invalid("entry {}: {}: must be a string", index, field);
  auto host = Host::Parse(found->get_ref<const std::string&>());
  if (!host.ok()) {
    return Invalid("entry {}: {}: {} is not a host name with an optional :port (1..65535)", index, field,
                   found->dump());
  }
  return host;
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

/// Whether it is the compact form, of whichever version.
bool HasCompactForm(const Json& json) {
  return json.is_array() && json.size() == 1 && json[0].is_object() && json[0].contains(kForm);
}

absl::StatusOr<std::vector<ShardRange>> ReadCompact(const Json& entry) {
  const Json& form = entry[kForm];
  if (!form.is_number_unsigned() || form.get<uint64_t>() != kFormNumber) {
    return Invalid("form: {} is not known to this program, which reads form {}; upgrade it",
                   form.dump(-1, ' ', true, Json::error_handler_t::replace), kFormNumber);
  }
  const auto packed = entry.find(kPacked);
  if (packed == entry.end() || !packed->is_string()) return Invalid("packed: must be a string");
  return UnpackRanges(packed->get_ref<const std::string&>());
}

}  // namespace

ShardMap::ShardMap(std::vector<ShardRange> ranges) : ranges_(std::move(ranges)) {
  for (const ShardRange& range : ranges_) open_shards_ += range.last - range.first + 1;
  if (ranges_.size() > kMaxShard) return;
  places_.assign(ranges_.back().last + 1, kClosed);
  for (size_t i = 0; i < ranges_.size(); ++i) {
    std::fill_n(places_.begin() + ranges_[i].first, ranges_[i].last - ranges_[i].first + 1,
                static_cast<uint16_t>(i));
  }
}

absl::StatusOr<ShardMap> ShardMap::Parse(std::string_view text) {
  if (text.size() > kMaxTextBytes) return Invalid("{} bytes, the limit is {}", text.size(), kMaxTextBytes);
  const auto json = ParseStrictly(text);
  if (!json.ok()) return json.status();
  if (!json->is_array()) return Invalid("must be an array of entries, not {}", json->type_name());
  if (HasCompactForm(*json)) {
    auto ranges = ReadCompact((*json)[0]);
    if (!ranges.ok()) return ranges.status();
    return Create(*std::move(ranges));
  }
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
  if (shard < places_.size()) {
    const uint16_t place = places_[shard];
    return place == kClosed ? nullptr : &ranges_[place];
  }
  return places_.empty() && shard <= kMaxShard ? &ranges_[shard] : nullptr;
}

bool ShardMap::IsCompact(std::string_view text) {
  if (text.size() > kMaxTextBytes) return false;
  const auto json = ParseStrictly(text);
  return json.ok() && HasCompactForm(*json);
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

std::string ShardMap::ToStored() const {
  constexpr std::string_view kShortest = R"({"range": [0, 0], "master": "a", "slave": "b"})";
  if (ranges_.size() * kShortest.size() <= kMaxPlainBytes) {
    if (std::string text = ToJson(); text.size() <= kMaxPlainBytes) return text;
  }
  std::string packed = PackRanges(ranges_);
  if (packed.empty()) return ToJson();
  const Json compact = {{kNotice, kNoticeValue}, {kForm, kFormNumber}, {kPacked, std::move(packed)}};
  return Json::array({compact}).dump() + "\n";
}

}  // namespace kvstore
