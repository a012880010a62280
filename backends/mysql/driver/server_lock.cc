#include "backends/mysql/driver/server_lock.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <utility>

#include "backends/mysql/driver/schema.h"

namespace kvstore::mysql {
namespace {

constexpr int kLockSeconds = 1;
constexpr int kNoSuchThread = 1094;

}  // namespace

ServerLock::ServerLock(Connection& connection, std::vector<std::string> names, Holder holder)
    : connection_(connection), names_(std::move(names)) {
  while (acquired_ < names_.size() && Acquire(names_[acquired_], holder)) ++acquired_;
  held_ = acquired_ == names_.size();
}

bool ServerLock::Acquire(const std::string& name, Holder holder) {
  const auto get = [&] {
    Rows got = connection_.Ask(fmt::format("SELECT GET_LOCK('{}', {})", name, kLockSeconds));
    return got.Next() && !got.IsNull(1) && got.Uint(1) == 1;
  };
  if (get()) return true;
  if (holder == Holder::kStays) return false;
  Rows rows = connection_.Ask(fmt::format("SELECT IS_USED_LOCK('{}')", name));
  if (rows.Next() && !rows.IsNull(1)) {
    try {
      connection_.Run(fmt::format("KILL {}", rows.Uint(1)));
    } catch (const sql::SQLException& error) {
      // The connection has ended by itself.
      if (error.getErrorCode() != kNoSuchThread) throw;
    }
  }
  return get();
}

ServerLock::~ServerLock() {
  try {
    while (acquired_ > 0) connection_.Ask(fmt::format("SELECT RELEASE_LOCK('{}')", names_[--acquired_]));
  } catch (const sql::SQLException&) {
    // The connection is gone, and the locks with it.
  }
}

std::string TablesLock(const DatasetSpec& spec, uint32_t shard) {
  // Both engines of a dataset share one name: it may migrate from one to the other on the same servers.
  const TableFamily family{.name = TableName(spec)};
  return fmt::format("{}.{}", DatabaseName(SpaceOf(spec.shape), shard), family.BaseName());
}

std::string ShardLock(const std::string& database) { return "kv " + database; }

}  // namespace kvstore::mysql
