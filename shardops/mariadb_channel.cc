#include <fmt/format.h>

#include "shardops/channel_dialect.h"
#include "shardops/channel_settings.h"
#include "shardops/quoted.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;

class OfMariaDbChannels final : public ChannelDialect {
 public:
  std::optional<Position> ReadPosition(Connection& source) const override {
    Rows rows = source.Ask("SHOW MASTER STATUS");
    if (!rows.Next()) return std::nullopt;
    return Position{.file = rows.Bytes(1), .offset = rows.Uint(2), .gtids = {}};
  }

  std::optional<ChannelState> Read(Connection& target) const override {
    Rows rows = target.Ask("SHOW ALL SLAVES STATUS");
    while (rows.Next()) {
      if (rows.Named("Connection_name") != kChannelName) continue;
      ChannelState state;
      state.source.name = rows.Named("Master_Host");
      state.source.port = static_cast<uint16_t>(std::stoul(rows.Named("Master_Port")));
      state.patterns = rows.Named("Replicate_Wild_Do_Table");
      state.receives = rows.Named("Slave_IO_Running") == "Yes";
      state.applies = rows.Named("Slave_SQL_Running") == "Yes";
      state.applied = {.file = rows.Named("Relay_Master_Log_File"),
                       .offset = std::stoull(rows.Named("Exec_Master_Log_Pos")),
                       .gtids = {}};
      state.error = rows.Named("Last_SQL_Error");
      if (state.error.empty()) state.error = rows.Named("Last_IO_Error");
      return state;
    }
    return std::nullopt;
  }

  void Start(Connection& target, const Host& source, const Access& access, const Position& from,
             const std::string& patterns) const override {
    target.Run(fmt::format(
        "CHANGE MASTER '{}' TO master_host = {}, master_port = {}, master_user = {}, master_password = {}, "
        "master_log_file = {}, master_log_pos = {}, master_use_gtid = no, master_connect_retry = 1",
        kChannelName, Quoted(source.name), source.port, Quoted(access.replication_user),
        Quoted(access.replication_password), Quoted(from.file), from.offset));
    PrepareForChannel(target);
    target.Run(fmt::format("SET SESSION default_master_connection = '{}'", kChannelName));
    target.Run(fmt::format("SET GLOBAL replicate_wild_do_table = {}", Quoted(patterns)));
    target.Run("SET SESSION default_master_connection = ''");
    target.Run(fmt::format("START SLAVE '{}'", kChannelName));
  }

  bool HasApplied(const ChannelState& state, const Position& /*from*/,
                  const Position& position) const override {
    return state.applied >= position;
  }

  void Pause(Connection& target) const override {
    target.Run(fmt::format("STOP SLAVE '{}' SQL_THREAD", kChannelName));
  }

  void ApplyUntil(Connection& target, const Position& /*from*/, const Position& position) const override {
    target.Run(fmt::format("START SLAVE '{}' SQL_THREAD UNTIL master_log_file = {}, master_log_pos = {}",
                           kChannelName, Quoted(position.file), position.offset));
  }

  void Resume(Connection& target, const Access& /*access*/) const override {
    target.Run(fmt::format("START SLAVE '{}'", kChannelName));
  }

  void End(Connection& target) const override {
    for (const std::string& name : ReadChannels(target)) EndChannel(target, name);
  }
};

}  // namespace

const ChannelDialect& MariaDbChannels() {
  static const OfMariaDbChannels dialect;
  return dialect;
}

const ChannelDialect& ChannelDialectOf(Engine engine) {
  return engine == Engine::kMariaDb ? MariaDbChannels() : MySqlChannels();
}

}  // namespace kvstore::shardops
