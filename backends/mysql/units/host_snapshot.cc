#include "backends/mysql/units/host_snapshot.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/mysql/driver/errors.h"
#include "backends/mysql/driver/schema.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How often a read is tried that waits in vain for the table, for example while a migration renames it.
constexpr int kAttempts = 3;
/// The most seconds that the servers take for wait_timeout.
constexpr int64_t kMaxWaitTimeout = 31'536'000;

}  // namespace

HostSnapshot::~HostSnapshot() {
  const MutexLock lock(mutex_);
  if (lease_) Lose("it was released").IgnoreError();
}

absl::Status HostSnapshot::Prepare(std::span<const uint32_t> shards, std::chrono::seconds max_idle,
                                   std::optional<uint32_t>& missing) {
  if (!hold_.status().ok()) return hold_.status();
  const MutexLock lock(mutex_);
  for (int attempt = 1;; ++attempt) {
    auto lease = pool_.Acquire();
    if (!lease.ok()) return lease.status();
    lease_.emplace(*std::move(lease));
    try {
      return PrepareOnce(shards, max_idle, missing);
    } catch (const sql::SQLException& error) {
      absl::Status status = ToStatus(error);
      const bool lost = Classify(error) == Trouble::kConnection;
      lease_->Fail(lost ? status : absl::OkStatus());
      lease_.reset();
      // The server may have closed the connection while it was idle, and accept another one.
      if (!lost || attempt == 2) return status;
    }
  }
}

absl::Status HostSnapshot::PrepareOnce(std::span<const uint32_t> shards, std::chrono::seconds max_idle,
                                       std::optional<uint32_t>& missing) {
  (*lease_)->Run(fmt::format("SET SESSION wait_timeout = {}",
                             std::clamp<int64_t>(max_idle.count(), 1, kMaxWaitTimeout)));
  lease_->Answered();
  for (const uint32_t shard : shards) {
    auto made = MadeAt(shard);
    if (!made) {
      missing = shard;
      return absl::FailedPreconditionError(fmt::format(
          "dataset: shard {} has no table of '{}'", DatabaseName(SpaceOf(spec_.shape), shard), spec_.name));
    }
    made_[shard] = *std::move(made);
  }
  return absl::OkStatus();
}

absl::Status HostSnapshot::Begin() {
  const MutexLock lock(mutex_);
  try {
    transaction_ = std::make_unique<Transaction>(**lease_, Transaction::Kind::kSnapshot);
    (*lease_)->Run("SAVEPOINT kv_units");
    return absl::OkStatus();
  } catch (const sql::SQLException& error) {
    Lose("it could not be taken").IgnoreError();
    return ToStatus(error);
  }
}

absl::Status HostSnapshot::Read(const Table& table, const ReadTable& work) {
  const MutexLock lock(mutex_);
  for (int attempt = 1;; ++attempt) {
    if (!lease_) return lost_;
    if (auto status = CheckCall(); !status.ok()) return status;
    try {
      return ReadOnce(table, work);
    } catch (const sql::SQLException& error) {
      const std::string text = fmt::format("{} (error {})", error.what(), error.getErrorCode());
      if (IsMissingTable(error) || IsTableChanged(error)) {
        return Lose(fmt::format("the dataset's table was dropped, renamed or altered: {}", text));
      }
      const Trouble trouble = Classify(error);
      if (trouble == Trouble::kConnection) return Lose(fmt::format("the connection was lost: {}", text));
      try {
        ReleaseTables();
      } catch (const sql::SQLException&) {
        return Lose(fmt::format("its transaction has ended: {}", text));
      }
      if (trouble == Trouble::kRefused || attempt == kAttempts) return ToStatus(error);
      if (trouble == Trouble::kStatementGone) (*lease_)->ForgetStatements();
    }
  }
}

absl::Status HostSnapshot::ReadOnce(const Table& table, const ReadTable& work) {
  absl::Status status = work(**lease_, table);
  // From the read until ReleaseTables, nobody can change the table.
  const auto made = MadeAt(table.shard);
  ReleaseTables();
  if (!made || *made != made_.at(table.shard)) return Lose("the dataset's table was dropped or renamed");
  return status;
}

std::optional<std::string> HostSnapshot::MadeAt(uint32_t shard) {
  Rows rows = (*lease_)->Ask(fmt::format(
      "SELECT create_time FROM information_schema.tables WHERE table_schema = '{}' AND table_name = '{}' AND "
      "table_comment = '{}' AND engine = '{}'",
      DatabaseName(SpaceOf(spec_.shape), shard), TableName(spec_), TableComment(spec_), EngineName(spec_)));
  if (!rows.Next()) return std::nullopt;
  return rows.IsNull(1) ? std::string() : rows.Bytes(1);
}

void HostSnapshot::ReleaseTables() { (*lease_)->Run("ROLLBACK TO SAVEPOINT kv_units"); }

void HostSnapshot::Expire(std::string_view why) {
  const MutexLock lock(mutex_);
  if (lease_) Lose(why).IgnoreError();
}

absl::Status HostSnapshot::Lose(std::string_view why) {
  transaction_.reset();
  // The connection is closed, because its session is not like others; the host is not to blame.
  lease_->Fail(absl::OkStatus());
  lease_.reset();
  lost_ = SnapshotExpiredError(why);
  return lost_;
}

}  // namespace kvstore::mysql
