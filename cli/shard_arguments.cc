#include "cli/shard_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace kvstore::cli {

CLI::Option* AddModFlag(CLI::App& command, ShardSpace& space, const std::string& description) {
  return command.add_flag_callback(
      "--mod", [&space] { space = ShardSpace::kMod; }, description);
}

shardops::MoveRange ParseRange(const std::string& text, ShardSpace space) {
  shardops::MoveRange range{.space = space};
  const auto number = [](std::string_view digits, uint32_t& shard) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shard);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const std::string_view all = text;
  const size_t dash = all.find('-');
  if (dash == std::string_view::npos || !number(all.substr(0, dash), range.first) ||
      !number(all.substr(dash + 1), range.last)) {
    WrongUsage(
        fmt::format("range: '{}' is not a range of shards; write FIRST-LAST, for example 256-511", text));
  }
  OrFail(shardops::CheckRange(range));
  return range;
}

Host ParseHost(const std::string& text) { return OrWrongUsage(Host::Parse(text)); }

shardops::Pair ParsePair(std::string_view option, const std::string& text) {
  return OrWrongUsage(shardops::ParsePair(option, text));
}

void AddRangeTo(Json& command, const shardops::MoveRange& range) {
  command["first"] = uint64_t{range.first};
  command["last"] = uint64_t{range.last};
  if (range.space == ShardSpace::kMod) command["mod"] = true;
}

void AddHostTo(Json& command, const char* option, const std::string& text) {
  if (!text.empty()) command[option] = ParseHost(text).ToString();
}

void AddPairTo(Json& command, const char* option, const std::string& text) {
  if (text.empty()) return;
  const shardops::Pair pair = ParsePair(option, text);
  command[option] = pair.master.ToString() + "," + pair.slave.ToString();
}

}  // namespace kvstore::cli
