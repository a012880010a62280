#include "operate/lookout.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "shardops/parallel.h"

namespace kvstore::operate {
namespace {

using shardops::HostAdmin;

std::string_view Name(SlaveSays says) {
  switch (says) {
    case SlaveSays::kLostIt:
      return "lost it";
    case SlaveSays::kHearsIt:
      return "hears it";
    case SlaveSays::kUnknown:
      break;
  }
  return "unknown";
}

/// INTERNAL if a host answers what cannot be understood.
absl::StatusOr<shardops::HostState> ReadState(const Host& host, const shardops::Access& access) {
  try {
    const auto admin = HostAdmin::Open(host, access);
    return admin.ok() ? (*admin)->Read() : admin.status();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

shardops::Access WithShortTimeouts(shardops::Access access) {
  access.admin.pool.connect_timeout_s = Lookout::kTimeoutS;
  access.admin.pool.read_timeout_s = Lookout::kTimeoutS;
  return access;
}

}  // namespace

Json ToJson(const Silence& silence) {
  return {{"master", silence.master.ToString()},
          {"error", silence.error},
          {"for_ms", silence.for_ms},
          {"slave", Name(silence.slave)},
          {"lost_ms", silence.lost_ms},
          {"slave_says", silence.slave_says}};
}

std::optional<Silence> SilenceFromJson(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto master = Host::Parse(text("master"));
  const auto for_ms = json.find("for_ms");
  if (!master.ok() || for_ms == json.end() || !for_ms->is_number_unsigned()) return std::nullopt;
  Silence silence{.master = *master,
                  .error = text("error"),
                  .for_ms = for_ms->get<uint64_t>(),
                  .slave_says = text("slave_says")};
  if (const auto lost_ms = json.find("lost_ms"); lost_ms != json.end() && lost_ms->is_number_unsigned()) {
    silence.lost_ms = lost_ms->get<uint64_t>();
  }
  for (const SlaveSays says : {SlaveSays::kLostIt, SlaveSays::kHearsIt}) {
    if (text("slave") == Name(says)) silence.slave = says;
  }
  return silence;
}

Lookout::Lookout(shardops::Access access) : access_(WithShortTimeouts(std::move(access))) {}

absl::Status Lookout::Ask(const Host& master, Watched& watched) const {
  if (watched.admin == nullptr) {
    auto admin = HostAdmin::Open(master, access_);
    if (!admin.ok()) return admin.status();
    watched.admin = *std::move(admin);
  }
  const absl::Status answered = watched.admin->WithConnection([](mysql::Connection& connection) {
    connection.Ask("SELECT 1");
    return absl::OkStatus();
  });
  // The connection may have been ended, as by a restart: the next look opens another one.
  if (!answered.ok()) watched.admin.reset();
  return answered;
}

absl::Status Lookout::AskSafely(const Host& master, Watched& watched) const {
  try {
    return Ask(master, watched);
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

void Lookout::AskSlave(const shardops::Pair& pair, Silence& silence) const {
  const std::string slave = pair.slave.ToString();
  const auto state = ReadState(pair.slave, access_);
  if (!state.ok()) {
    silence.slave_says = std::string(state.status().message());
  } else if (!state->following) {
    silence.slave_says = slave + " follows nobody";
  } else if (state->following->master != pair.master) {
    silence.slave_says = slave + " follows " + state->following->master.ToString();
  } else if (state->following->receives) {
    silence.slave = SlaveSays::kHearsIt;
    silence.slave_says = slave + " is connected to it";
  } else {
    silence.slave = SlaveSays::kLostIt;
    silence.slave_says = slave + " has lost it, too";
  }
}

std::vector<Silence> Lookout::Look(std::span<const shardops::Pair> pairs) {
  std::set<Host> masters;
  for (const shardops::Pair& pair : pairs) {
    masters.insert(pair.master);
    watched_[pair.master];  // From here on the threads change no map.
  }
  std::erase_if(watched_, [&](const auto& one) { return !masters.contains(one.first); });
  std::vector<std::optional<Silence>> found(pairs.size());
  shardops::InParallel(pairs.size(), [&](size_t i) {
    const shardops::Pair& pair = pairs[i];
    Watched& watched = watched_.find(pair.master)->second;
    const auto begin = Clock::now();
    const absl::Status answered = AskSafely(pair.master, watched);
    // A host that answers with an error is there.
    if (!absl::IsUnavailable(answered)) {
      watched.silent_since.reset();
      watched.lost_since.reset();
      return;
    }
    if (!watched.silent_since) watched.silent_since = begin;
    Silence silence{.master = pair.master,
                    .error = std::string(answered.message()),
                    .for_ms = Milliseconds(Clock::now() - *watched.silent_since)};
    const auto asked = Clock::now();
    AskSlave(pair, silence);
    if (silence.slave != SlaveSays::kLostIt) watched.lost_since.reset();
    if (silence.slave == SlaveSays::kLostIt) {
      if (!watched.lost_since) watched.lost_since = asked;
      silence.lost_ms = Milliseconds(Clock::now() - *watched.lost_since);
    }
    found[i] = std::move(silence);
  });
  std::vector<Silence> silences;
  for (auto& silence : found) {
    if (silence) silences.push_back(*std::move(silence));
  }
  return silences;
}

}  // namespace kvstore::operate
