#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/zookeeper.h"
#include "kvstore_api/ledger.h"

namespace kvstore {

/// A ledger in ZooKeeper, shared by many processes. Below a root:
///
///   /operations     counts what is begun: each sets it, in one transaction with the operation's node
///   /operations/ID  one operation (ledger_json.h); ephemeral unless it is a lasting one
///
/// Everybody may write the first, so that operators and programs that are different users of ZooKeeper share
/// it.
///
/// So what was decided on still holds when an operation begins. Ends are not counted: a ledger that has not
/// heard of one looks again before it refuses. To begin and to end is a round trip each, where nobody else
/// has begun anything meanwhile.
class ZooKeeperLedger : public Ledger {
 public:
  /// The session must outlive it: operations that do not last go with it.
  ZooKeeperLedger(ZooKeeper& zookeeper, const std::string& root)
      : zookeeper_(zookeeper), folder_(root + "/operations") {}
  /// With a session of its own.
  ZooKeeperLedger(const ZooKeeperOptions& options, const std::string& root)
      : own_(std::make_unique<ZooKeeper>(options, nullptr)),
        zookeeper_(*own_),
        folder_(root + "/operations") {}

  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  void Tidy() override;
  absl::StatusOr<std::vector<Operation>> List() override;

  /// Makes changes that depend on an operation: all steps, if it is held at that moment; else ABORTED.
  absl::Status Change(const Held& hold, std::vector<ZooKeeperStep> steps);

 protected:
  absl::StatusOr<Held> Enter(Operation operation, bool over) override;

 private:
  std::string PathOf(std::string_view id) const { return folder_ + "/" + std::string(id); }
  /// Reads what is held.
  absl::Status Refresh();
  /// Of operations whose begin or end was left open; stops at the first that cannot be removed now.
  void RemoveLeftOver();

  const std::unique_ptr<ZooKeeper> own_;  // null: another's
  ZooKeeper& zookeeper_;
  const std::string folder_;
  std::mutex mutex_;
  int32_t version_ = -1;  // of folder_, and what follows is not older; guarded by mutex_
  std::map<std::string, Operation, std::less<>>
      known_;                           // held at that version; some may have ended; guarded by mutex_
  std::vector<std::string> left_over_;  // IDs; guarded by mutex_
};

}  // namespace kvstore
