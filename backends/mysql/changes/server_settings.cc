#include "backends/mysql/changes/server_settings.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <sstream>
#include <string>

#include "backends/mysql/driver/log_connection.h"

namespace kvstore::mysql {
namespace {

/// A setting of which there is one value that will do, as the server says it.
struct Needed {
  std::string_view name;
  std::string_view value;
  std::string_view must;
};
constexpr std::string_view kSetAndRestart = "set it in the server's configuration, and start it again";
constexpr std::array<Needed, 5> kNeeded = {
    Needed{"log_bin", "ON", kSetAndRestart},
    Needed{"log_slave_updates", "ON", kSetAndRestart},
    Needed{"binlog_format", "ROW", "set it to ROW, in the server's configuration too"},
    Needed{"log_bin_compress", "OFF", "set it to OFF"},
    Needed{"gtid_strict_mode", "ON", "set it to ON"},
};

}  // namespace

absl::Status SettingError(const Host& host, std::string_view setting, std::string_view is,
                          std::string_view must) {
  return absl::FailedPreconditionError(fmt::format(
      "{}: is {} at {}, and changes are read from binary logs: {}", setting, is, host.ToString(), must));
}

absl::Status CheckLogSettings(const Host& host, const MySqlOptions& login) {
  LogConnection connection;
  std::string names = "@@global.sync_binlog";
  for (const Needed& needed : kNeeded) names += fmt::format(", @@global.{}", needed.name);
  absl::StatusOr<std::string> said = absl::UnavailableError("");
  if (connection.Connect(host, login, login.pool.read_timeout_s, {})) {
    said = connection.AskOne("SELECT CONCAT_WS(' ', " + names + ")");
  }
  if (!said.ok()) {
    spdlog::warn(
        "changes: the settings of {} could not be checked, which followers need once it is a master: {}",
        host.ToString(), connection.error().message);
    return absl::OkStatus();
  }
  std::istringstream values(*said);
  std::string value;
  values >> value;
  if (value != "1") {
    spdlog::warn(
        "changes: sync_binlog is {} at {}: after a power failure its binary log may lack what followers "
        "were told; set it to 1",
        value, host.ToString());
  }
  for (const Needed& needed : kNeeded) {
    values >> value;
    if (value != needed.value) return SettingError(host, needed.name, value, needed.must);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
