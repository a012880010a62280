#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"
#include "shardops/channel_dialect.h"
#include "shardops/gtid.h"
#include "shardops/gtid_set.h"
#include "shardops/mysql_replication.h"
#include "shardops/quoted.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;

/// MySQL tells by sets of GTIDs what is applied. Where the threads that apply a channel are in the source's
/// log it says only now and then.
///
/// A transaction keeps the GTID that it has at its source, and one that the filter leaves out becomes an
/// empty transaction. So the target, and its slave, have the GTIDs of all that the source wrote since the
/// channel began. A GTID that the target has already is skipped when it comes. That loses nothing: whatever
/// an earlier channel has brought from this source was committed there before a later copy was made
/// (Mover::Copy checks that), and no GTID is ever given twice.
class OfMySqlChannels final : public ChannelDialect {
 public:
  std::optional<Position> ReadPosition(Connection& source) const override {
    Rows rows = source.Ask("SHOW BINARY LOG STATUS");
    if (!rows.Next()) return std::nullopt;
    return Position{.file = rows.Named("File"),
                    .offset = std::stoull(rows.Named("Position")),
                    .gtids = OneLine(rows.Named("Executed_Gtid_Set"))};
  }

  std::optional<ChannelState> Read(Connection& target) const override {
    std::optional<ChannelState> found;
    ForEachChannel(target, [&](const std::string& name, const Rows& rows) {
      if (name != kChannelName) return;
      ChannelState state;
      state.source.name = rows.Named("Source_Host");
      state.source.port = static_cast<uint16_t>(std::stoul(rows.Named("Source_Port")));
      state.patterns = rows.Named("Replicate_Wild_Do_Table");
      state.receives = rows.Named("Replica_IO_Running") == "Yes";
      state.applies = rows.Named("Replica_SQL_Running") == "Yes";
      state.applied = {.file = rows.Named("Relay_Source_Log_File"),
                       .offset = std::stoull(rows.Named("Exec_Source_Log_Pos")),
                       .gtids = OneLine(rows.Named("Executed_Gtid_Set"))};
      state.error = rows.Named("Last_SQL_Error");
      if (state.error.empty()) state.error = rows.Named("Last_IO_Error");
      found = std::move(state);
    });
    return found;
  }

  void Start(Connection& target, const Host& source, const Access& access, const Position& from,
             const std::string& patterns) const override {
    // Without SOURCE_AUTO_POSITION: by that the source would send all that the target lacks, which is also
    // what it had written before the copy.
    target.Run(
        fmt::format("CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {}, SOURCE_LOG_FILE = {}, "
                    "SOURCE_LOG_POS = {}, SOURCE_AUTO_POSITION = 0, GET_SOURCE_PUBLIC_KEY = 1, "
                    "SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 4294967295 FOR CHANNEL '{}'",
                    Quoted(source.name), source.port, Quoted(from.file), from.offset, kChannelName));
    std::vector<std::string> quoted;
    for (const absl::string_view pattern : absl::StrSplit(patterns, ',')) {
      quoted.push_back(Quoted({pattern.data(), pattern.size()}));
    }
    target.Run(fmt::format("CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ({}) FOR CHANNEL '{}'",
                           fmt::join(quoted, ", "), kChannelName));
    Resume(target, access);
  }

  bool HasApplied(const ChannelState& state, const Position& from, const Position& position) const override {
    // Once a shard's tables are renamed (Freeze), the source's set has all that was ever written to them: a
    // transaction keeps its tables locked until its GTID is in the set. And a GTID is in the target's set
    // only when the transaction is committed there, which the target's slave has acknowledged by then.
    return CountMissing(position.gtids, UnionOfSets(state.applied.gtids, from.gtids)) == 0;
  }

  void Pause(Connection& target) const override {
    target.Run(fmt::format("STOP REPLICA SQL_THREAD FOR CHANNEL '{}'", kChannelName));
  }

  void ApplyUntil(Connection& target, const Position& from, const Position& position) const override {
    const auto state = Read(target);
    if (state && HasApplied(*state, from, position)) return;
    // Transactions that the copy had from the beginning never come.
    GtidSet coming(position.gtids);
    coming.Remove(GtidSet(from.gtids));
    target.Run(fmt::format("START REPLICA SQL_THREAD UNTIL SQL_AFTER_GTIDS = {} FOR CHANNEL '{}'",
                           Quoted(coming.ToString()), kChannelName));
  }

  void Resume(Connection& target, const Access& access) const override {
    // A login that is given here is not stored. So a server that was started again, and has forgotten the
    // filter, gets nothing more from the source.
    target.Run(fmt::format("START REPLICA USER = {} PASSWORD = {} FOR CHANNEL '{}'",
                           Quoted(access.replication_user), Quoted(access.replication_password),
                           kChannelName));
  }

  void End(Connection& target) const override {
    if (Read(target)) RemoveChannel(target, kChannelName);
  }
};

}  // namespace

const ChannelDialect& MySqlChannels() {
  static const OfMySqlChannels dialect;
  return dialect;
}

}  // namespace kvstore::shardops
