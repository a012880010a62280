#include "shardops/channel.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "backends/mysql/driver/tables.h"
#include "shardops/channel_dialect.h"

namespace kvstore::shardops {
namespace {

using std::chrono::milliseconds;

/// How often AwaitApplied asks the server.
constexpr milliseconds kAppliedPoll{10};

absl::Status StoppedError(const Host& host, const ChannelState& state) {
  return absl::FailedPreconditionError(fmt::format(
      "{}: does not apply what comes from {}: {}. kv shards move cancel, mend that, and begin again",
      host.ToString(), state.source.ToString(), state.error.empty() ? "it was stopped" : state.error));
}

}  // namespace

absl::StatusOr<Position> ReadPosition(HostAdmin& source) {
  return source.WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<Position> {
    const auto position = ChannelDialectOf(source.engine()).ReadPosition(connection);
    if (position) return *position;
    return absl::FailedPreconditionError(source.host().ToString() +
                                         ": has no binary log: set log_bin in its configuration, and "
                                         "start it again");
  });
}

std::string ReplicationPatterns(ShardSpace space, uint32_t first, uint32_t last) {
  std::string patterns;
  for (uint32_t shard = first; shard <= last;) {
    // One pattern covers `size` shards: as many trailing digits become wildcards as stay within the range.
    uint32_t size = 1;
    while (size < 10'000 && shard % (size * 10) == 0 && shard + size * 10 - 1 <= last) size *= 10;
    std::string name = mysql::DatabaseName(space, shard);
    size_t place = name.size();
    for (uint32_t rest = size; rest > 1; rest /= 10) name[--place] = '_';
    patterns += fmt::format("{}{}.%", patterns.empty() ? "" : ",", name);
    shard += size;
  }
  return patterns;
}

Channel::Channel(HostAdmin& target, Position from)
    : target_(target), from_(std::move(from)), dialect_(ChannelDialectOf(target.engine())) {}

absl::StatusOr<std::optional<ChannelState>> Channel::Read() {
  return target_.WithConnection(
      [&](mysql::Connection& connection) -> absl::StatusOr<std::optional<ChannelState>> {
        return dialect_.Read(connection);
      });
}

absl::Status Channel::Start(const Host& source, const Access& access, const std::string& patterns) {
  return target_.WithConnection([&](mysql::Connection& connection) {
    dialect_.Start(connection, source, access, from_, patterns);
    return absl::OkStatus();
  });
}

absl::Status Channel::AwaitApplied(const Position& position, milliseconds wait) {
  return Await(position, wait, /*connected=*/false);
}

absl::Status Channel::AwaitCaughtUp(const Position& position, milliseconds wait) {
  return Await(position, wait, /*connected=*/true);
}

absl::Status Channel::Await(const Position& position, milliseconds wait, bool connected) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto state = Read();
    if (!state.ok()) return state.status();
    if (!*state) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: the channel that copies shards to it ({}) is gone. kv shards move cancel, and begin again",
          target_.host().ToString(), kChannelName));
    }
    const bool there = dialect_.HasApplied(**state, from_, position);
    if (there && ((*state)->receives || !connected)) return absl::OkStatus();
    if (!(*state)->applies) return StoppedError(target_.host(), **state);
    if (std::chrono::steady_clock::now() >= deadline) {
      if (!(*state)->error.empty()) {
        return absl::UnavailableError(fmt::format("{}: does not reach {}: {}", target_.host().ToString(),
                                                  (*state)->source.ToString(), (*state)->error));
      }
      if (there) {
        return absl::DeadlineExceededError(fmt::format(
            "{}: is not connected to {}", target_.host().ToString(), (*state)->source.ToString()));
      }
      return absl::DeadlineExceededError(
          fmt::format("{}: has not applied all up to {}:{} of {} in {} ms", target_.host().ToString(),
                      position.file, position.offset, (*state)->source.ToString(), wait.count()));
    }
    std::this_thread::sleep_for(kAppliedPoll);
  }
}

absl::Status Channel::Pause() {
  return target_.WithConnection([&](mysql::Connection& connection) {
    dialect_.Pause(connection);
    return absl::OkStatus();
  });
}

absl::Status Channel::ApplyUpTo(const Position& position, milliseconds wait) {
  auto status = target_.WithConnection([&](mysql::Connection& connection) {
    dialect_.ApplyUntil(connection, from_, position);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  status = AwaitApplied(position, wait);
  if (!status.ok()) return status;
  return Pause();
}

absl::Status Channel::Resume(const Access& access) {
  return target_.WithConnection([&](mysql::Connection& connection) {
    dialect_.Resume(connection, access);
    return absl::OkStatus();
  });
}

absl::Status Channel::End() {
  return target_.WithConnection([&](mysql::Connection& connection) {
    dialect_.End(connection);
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
