#pragma once

#include <cstdint>
#include <string_view>

/// The engines of servers that this folder operates, and what their settings and statements are called.
namespace kvstore::shardops {

enum class Engine : uint8_t { kMariaDb, kMySql };

/// The names that one engine has for the settings and statements in messages, so that what a message tells an
/// operator to type works there.
struct Words {
  std::string_view engine;           ///< "MariaDB"
  std::string_view master_settings;  ///< The settings that a master needs: "log_bin and gtid_strict_mode".
  std::string_view slave_settings;   ///< The settings that a slave needs which is to become a master.
  std::string_view semi_sync;        ///< Commits of a master wait for its slave.
  std::string_view wait_no_slave;    ///< They also wait while no slave is connected.
  std::string_view wait_timeout;     ///< How long they wait, in ms.
  std::string_view wait_point;       ///< Whether clients see what was not acknowledged.
  std::string_view stop_slave;
  std::string_view forget_master;  ///< The statements that make a slave follow nobody.
  std::string_view start_applying;
  std::string_view stop_channels;  ///< Ends the channels of a move that was given up.
  std::string_view dump_command;   ///< The command that SHOW PROCESSLIST has for a connection of a slave.
};

const Words& WordsOf(Engine engine);

}  // namespace kvstore::shardops
