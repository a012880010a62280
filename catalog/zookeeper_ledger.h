#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "catalog/deadline_mutex.h"
#include "catalog/ledger.h"
#include "coordination/zookeeper.h"

namespace kvstore {

/// A ledger in ZooKeeper, shared by many processes. Below a root:
///
///   /operations     its version counts the operations that were begun
///   /operations/ID  one operation (ledger_json.h); ephemeral unless it is a lasting one
///
/// An operation begins by one transaction that sets /operations at the version that was last read, and
/// creates the operation's node: it fails if another operation was begun since. Ends are not counted; a
/// ledger that would refuse reads the nodes again first, because it may not have heard of an end. So to
/// begin, and to end, takes one round trip each where nobody else has begun anything meanwhile.
///
/// /operations is writable for everybody, so that operators and programs that are different users of
/// ZooKeeper can share it.
class ZooKeeperLedger : public Ledger {
 public:
  /// Uses a session that must outlive this. Operations that are not lasting end with the session.
  ///
  /// who         As Ledger::who; empty: this process.
  /// conditions  Steps of the kind kCheck without which this ledger begins and changes nothing: from the
  ///             moment when one of them fails, all calls but End and List are ABORTED. So a process that
  ///             operates only as long as it is the leader cannot do so behind its successor's back.
  ZooKeeperLedger(ZooKeeper& zookeeper, const std::string& root, std::string who = "",
                  std::vector<ZooKeeperStep> conditions = {})
      : zookeeper_(zookeeper),
        folder_(root + "/operations"),
        who_(std::move(who)),
        conditions_(std::move(conditions)) {}
  /// Opens a session of its own.
  ZooKeeperLedger(const ZooKeeperOptions& options, const std::string& root)
      : own_(std::make_unique<ZooKeeper>(options, nullptr)),
        zookeeper_(*own_),
        folder_(root + "/operations") {}

  std::string who() const override { return who_.empty() ? Ledger::who() : who_; }
  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  void RetryEnds() override;
  absl::StatusOr<std::vector<Operation>> List() override;

  /// Makes all changes in one transaction, provided that the operation is still held, and the conditions
  /// hold; else ABORTED.
  absl::Status Change(const Held& hold, std::vector<ZooKeeperStep> steps);

 protected:
  absl::StatusOr<Held> AcquireClaims(Operation operation, bool over) override;

 private:
  /// ABORTED if one of the conditions does not hold any more.
  absl::Status CheckConditions();
  /// Adds the conditions to a transaction.
  void AddConditions(std::vector<ZooKeeperStep>& steps) const {
    steps.insert(steps.end(), conditions_.begin(), conditions_.end());
  }
  std::string PathOf(std::string_view id) const { return folder_ + "/" + std::string(id); }
  /// Reads the operations that are held into known_. The caller holds ledger_mutex_.
  absl::Status Refresh();
  /// Removes the nodes in left_over_; stops at the first that cannot be removed now. Waits for ZooKeeper,
  /// without holding left_mutex_.
  void RemoveLeftOver();
  void AddLeftOver(std::string id);

  const std::unique_ptr<ZooKeeper> own_;  // null if the session belongs to somebody else
  ZooKeeper& zookeeper_;
  const std::string folder_;
  const std::string who_;
  const std::vector<ZooKeeperStep> conditions_;
  // Serialises what reads or changes the ledger here; its holder alone uses the two members that follow.
  DeadlineMutex ledger_mutex_;
  // The version of folder_ that was seen last, -1 if it must be read again. known_ is at least as new.
  int32_t version_ = -1;
  // The operations that were held at that version, by ID; some may have ended since.
  std::map<std::string, Operation, std::less<>> known_;
  Mutex left_mutex_;
  // IDs of operations whose begin or end has an unknown outcome: their nodes are to be removed.
  std::vector<std::string> left_over_ ABSL_GUARDED_BY(left_mutex_);
};

}  // namespace kvstore
