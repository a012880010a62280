#include "shardops/channel.h"

#include <fmt/format.h>

#include <thread>

#include "backends/mysql/driver/tables.h"
#include "shardops/channel_settings.h"

namespace kvstore::shardops {
namespace {

using mysql::Rows;
using std::chrono::milliseconds;

constexpr char kName[] = "kvstore_move";
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
    Rows rows = connection.Ask("SHOW MASTER STATUS");
    if (!rows.Next()) {
      return absl::FailedPreconditionError(source.host().ToString() +
                                           ": has no binary log: set log_bin in its configuration, and "
                                           "start it again");
    }
    return Position{rows.Bytes(1), rows.Uint(2)};
  });
}

std::string ReplicationPatterns(bool mod, uint32_t first, uint32_t last) {
  const mysql::Space space = mod ? mysql::Space::kMod : mysql::Space::kId;
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

absl::StatusOr<std::optional<ChannelState>> Channel::Read() {
  return target_.WithConnection([&](mysql::Connection& connection)
                                    -> absl::StatusOr<std::optional<ChannelState>> {
    Rows rows = connection.Ask("SHOW ALL SLAVES STATUS");
    while (rows.Next()) {
      if (rows.Named("Connection_name") != kName) continue;
      ChannelState state;
      state.source.name = rows.Named("Master_Host");
      state.source.port = static_cast<uint16_t>(std::stoul(rows.Named("Master_Port")));
      state.patterns = rows.Named("Replicate_Wild_Do_Table");
      state.receives = rows.Named("Slave_IO_Running") == "Yes";
      state.applies = rows.Named("Slave_SQL_Running") == "Yes";
      state.applied = {rows.Named("Relay_Master_Log_File"), std::stoull(rows.Named("Exec_Master_Log_Pos"))};
      state.error = rows.Named("Last_SQL_Error");
      if (state.error.empty()) state.error = rows.Named("Last_IO_Error");
      return state;
    }
    return std::nullopt;
  });
}

absl::Status Channel::Start(const Host& source, const Access& access, const Position& from,
                            const std::string& patterns) {
  return target_.WithConnection([&](mysql::Connection& connection) {
    connection.Run(fmt::format(
        "CHANGE MASTER '{}' TO master_host = {}, master_port = {}, master_user = {}, master_password = {}, "
        "master_log_file = {}, master_log_pos = {}, master_use_gtid = no, master_connect_retry = 1",
        kName, Quoted(source.name), source.port, Quoted(access.replication_user),
        Quoted(access.replication_password), Quoted(from.file), from.offset));
    PrepareForChannel(connection);
    connection.Run(fmt::format("SET SESSION default_master_connection = '{}'", kName));
    connection.Run(fmt::format("SET GLOBAL replicate_wild_do_table = {}", Quoted(patterns)));
    connection.Run("SET SESSION default_master_connection = ''");
    connection.Run(fmt::format("START SLAVE '{}'", kName));
    return absl::OkStatus();
  });
}

absl::Status Channel::AwaitApplied(const Position& position, milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto state = Read();
    if (!state.ok()) return state.status();
    if (!*state) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: the channel that copies shards to it ({}) is gone. kv shards move cancel, and begin again",
          target_.host().ToString(), kName));
    }
    if ((*state)->applied >= position) return absl::OkStatus();
    if (!(*state)->applies) return StoppedError(target_.host(), **state);
    if (std::chrono::steady_clock::now() >= deadline) {
      if (!(*state)->error.empty()) {
        return absl::UnavailableError(fmt::format("{}: does not reach {}: {}", target_.host().ToString(),
                                                  (*state)->source.ToString(), (*state)->error));
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
    connection.Run(fmt::format("STOP SLAVE '{}' SQL_THREAD", kName));
    return absl::OkStatus();
  });
}

absl::Status Channel::ApplyUpTo(const Position& position, milliseconds wait) {
  auto status = target_.WithConnection([&](mysql::Connection& connection) {
    connection.Run(fmt::format("START SLAVE '{}' SQL_THREAD UNTIL master_log_file = {}, master_log_pos = {}",
                               kName, Quoted(position.file), position.offset));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  status = AwaitApplied(position, wait);
  if (!status.ok()) return status;
  return Pause();
}

absl::Status Channel::Resume() {
  return target_.WithConnection([&](mysql::Connection& connection) {
    connection.Run(fmt::format("START SLAVE '{}'", kName));
    return absl::OkStatus();
  });
}

absl::Status Channel::End() {
  return target_.WithConnection([&](mysql::Connection& connection) {
    for (const std::string& name : ReadChannels(connection)) EndChannel(connection, name);
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
