#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_range.h"

namespace kvstore::mysql {

/// Returns the error FAILED_PRECONDITION about a setting of a server whose binary log is read.
///
/// is    the setting's value.
/// must  what to do about it: "set it to ON".
absl::Status SettingError(const Host& host, std::string_view setting, std::string_view is,
                          std::string_view must);

/// Checks that a host, which may be a slave, logs what followers of changes need, so that they can go on
/// there when it is promoted: log_bin, log_slave_updates, binlog_format, log_bin_compress, gtid_strict_mode.
/// Connects to it, whatever its role is. FAILED_PRECONDITION names the host and the setting.
///
/// A host that cannot be reached is logged as a warning, and so is sync_binlog if it is not 1; they are no
/// errors.
absl::Status CheckLogSettings(const Host& host, const MySqlOptions& login);

}  // namespace kvstore::mysql
