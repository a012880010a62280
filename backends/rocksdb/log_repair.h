#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/data_dir.h"

/// A store whose log has a hole, or lacks an end that it had at the last close, is not opened: what was
/// written behind the hole would be there, and what was written before it not. It can be made to end at the
/// hole. All that is left out is moved into a folder, and nothing of it is looked at again.
namespace kvstore::rocks {

/// The first log that is damaged, and what would be left out.
struct LogDamage {
  std::filesystem::path log;                 ///< May be gone.
  uint64_t kept = 0;                         ///< Its bytes that can be read, from its beginning.
  std::vector<std::filesystem::path> later;  ///< The logs behind it, in order.
  uint64_t left_out = 0;                     ///< Bytes of all that are left out, also of what is gone.
  uint64_t changes = 0;  ///< Keys put and deleted in what is left out and can still be read.
};

/// Looks at the logs of a store that is not open here. Nullopt if none is damaged.
absl::StatusOr<std::optional<LogDamage>> FindLogDamage(const DataDir& dir);

/// Lets the logs end at the damage, and returns the folder with the rest, "left-out/..." in that of the
/// store. One that is cut short leaves the store damaged as before, to be tried again. The next open raises
/// the counters of IDs above all that may have been given (see TakeLeftOut).
absl::StatusOr<std::filesystem::path> EndLogsAtDamage(const DataDir& dir, const LogDamage& damage);

/// The bytes of logs that were left out and of which no open has taken notice; 0: none.
uint64_t LeftOut(const DataDir& dir);
/// They are taken notice of.
absl::Status ForgetLeftOut(const DataDir& dir);

}  // namespace kvstore::rocks
