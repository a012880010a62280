#pragma once

#include <optional>
#include <string>

#include "backends/mysql/driver/connection.h"
#include "shardops/channel_state.h"
#include "shardops/engine.h"
#include "shardops/host_state.h"

namespace kvstore::shardops {

/// The name that a channel has in its server.
inline constexpr char kChannelName[] = "kvstore_move";

/// The statements of channels, of one engine; `Channel` and ReadPosition are what others call. All calls
/// throw sql::SQLException. Without state; any thread may use it.
class ChannelDialect {
 public:
  virtual ~ChannelDialect() = default;

  /// As ReadPosition; nullopt if the host writes no binary log.
  virtual std::optional<Position> ReadPosition(mysql::Connection& source) const = 0;

  // ---- as the calls of Channel ----

  virtual std::optional<ChannelState> Read(mysql::Connection& target) const = 0;
  virtual void Start(mysql::Connection& target, const Host& source, const Access& access,
                     const Position& from, const std::string& patterns) const = 0;
  /// Whether a channel that has begun at `from` has applied all up to `position`.
  virtual bool HasApplied(const ChannelState& state, const Position& from,
                          const Position& position) const = 0;
  virtual void Pause(mysql::Connection& target) const = 0;
  /// Has a paused channel, which has begun at `from`, go on up to `position` and then stop applying.
  virtual void ApplyUntil(mysql::Connection& target, const Position& from,
                          const Position& position) const = 0;
  virtual void Resume(mysql::Connection& target, const Access& access) const = 0;
  virtual void End(mysql::Connection& target) const = 0;
};

const ChannelDialect& MariaDbChannels();
const ChannelDialect& MySqlChannels();
const ChannelDialect& ChannelDialectOf(Engine engine);

}  // namespace kvstore::shardops
