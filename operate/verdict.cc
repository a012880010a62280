#include "operate/verdict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace kvstore::operate {
namespace {

/// Returns what a member sees of a master: nullopt if it reaches the master.
std::optional<Silence> SeenBy(const Member& member, const Host& master) {
  for (const Json& one : member.says.at("silent")) {
    auto silence = SilenceFromJson(one);
    if (silence && silence->master == master) return silence;
  }
  return std::nullopt;
}

bool HasLooked(const Member& member) {
  return member.says.is_object() && member.says.contains("silent") && member.says["silent"].is_array();
}

}  // namespace

Json Says(std::span<const Silence> silences) {
  Json silent = Json::array();
  for (const Silence& silence : silences) silent.push_back(ToJson(silence));
  return {{"silent", std::move(silent)}};
}

Verdict Judge(const Silence& own, std::span<const Member> others, uint64_t now_ms) {
  if (own.for_ms < kDeadAfterMs) {
    return {.why = fmt::format("it has not answered for {} ms; it is given {} ms", own.for_ms, kDeadAfterMs)};
  }
  if (own.slave == SlaveSays::kHearsIt) {
    return {.why = fmt::format("{}, so it lives", own.slave_says)};
  }
  if (own.slave != SlaveSays::kLostIt) {
    return {.why = fmt::format("its slave does not say that it has lost it: {}", own.slave_says)};
  }
  if (own.lost_ms < kLostForMs) {
    return {.why = fmt::format("{}, but for {} ms only, and may be about to connect again", own.slave_says,
                               own.lost_ms)};
  }
  std::string seconds;
  for (const Member& member : others) {
    if (!HasLooked(member) || member.said_ms + kFreshMs < now_ms) continue;
    const auto seen = SeenBy(member, own.master);
    if (!seen) return {.why = fmt::format("{} reaches it", member.who)};
    if (seen->slave != SlaveSays::kLostIt) {
      return {.why =
                  fmt::format("{} does not reach it, but by what it sees: {}", member.who, seen->slave_says)};
    }
    if (seen->for_ms < kDeadAfterMs || seen->lost_ms < kLostForMs) {
      return {.why = fmt::format("{} has not reached it for {} ms only, and its slave for {} ms", member.who,
                                 seen->for_ms, seen->lost_ms)};
    }
    seconds += fmt::format("{}{}", seconds.empty() ? "" : ", ", member.who);
  }
  if (seconds.empty()) {
    return {.why = "there is no second observer: run kv operate on another machine, too"};
  }
  return {.dead = true,
          .why = fmt::format("{}; {}; {} cannot reach it either", own.error, own.slave_says, seconds)};
}

}  // namespace kvstore::operate
