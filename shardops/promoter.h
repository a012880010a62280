#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "catalog/zookeeper_ledger.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/maps.h"
#include "shardops/notes.h"
#include "shardops/promote_options.h"

namespace kvstore::shardops {

/// The work of promoting a host, as the maps alone tell it.
struct PromotionPlan {
  Pair before;             ///< The host's pair, as the maps have it.
  bool published = false;  ///< The host is the master of the pair already.
};

/// FAILED_PRECONDITION if the host is not in exactly one pair.
absl::StatusOr<PromotionPlan> PlanPromotion(const Maps& maps, const Host& host);

/// Carries out one promotion (promote.h). Used once, by one thread.
class Promoter {
 public:
  /// held  The operation in the ledger; of a dry run an empty one. `fleet` and `options` must outlive this.
  Promoter(FleetOperator& fleet, const PromoteOptions& options, PromotionPlan plan, Held held)
      : fleet_(fleet), options_(options), plan_(std::move(plan)), held_(std::move(held)) {}

  absl::StatusOr<Promotion> Run();

 private:
  using Clock = std::chrono::steady_clock;

  /// The state of the other host when the maps name this one the master already.
  struct OtherHost {
    bool usable = true;    ///< It can follow this host, if it answers.
    bool follows = false;  ///< It is usable, and says that it follows this host, though it may not replicate.
  };

  /// The host that becomes the master, or is it by the maps already.
  const Host& host() const { return plan_.published ? plan_.before.master : plan_.before.slave; }
  /// The other host of the pair.
  const Host& other() const { return plan_.published ? plan_.before.slave : plan_.before.master; }

  /// Does what is left, if anything is, when the maps name the host the master already.
  absl::StatusOr<Promotion> Complete();
  absl::StatusOr<Promotion> Planned();
  absl::StatusOr<Promotion> Emergency();
  /// Claims a host from whoever has the claim. ABORTED if this operation is not held.
  absl::Status TakeHost(HostAdmin& admin) const;
  /// Checks that a slave could be a master, and follows this pair's master, or nobody because an interrupted
  /// promotion got that far.
  absl::Status CheckSlave(const HostState& slave) const;
  /// Checks the roles and the lag of both hosts for a planned promotion.
  absl::Status CheckPlanned(const HostState& master, const HostState& slave) const;
  /// Makes the master read-only, ends its clients' connections, and waits until the slave has applied
  /// everything. Returns when writes stopped. If this fails, the master takes writes again if it did before,
  /// unless another operator has promoted the slave meanwhile.
  ///
  /// was  the master's state before.
  absl::StatusOr<Clock::time_point> Drain(HostAdmin& master, const HostState& was, HostAdmin& slave);
  /// Waits until the slave has all that the master has, which takes no writes any more.
  absl::Status AwaitAll(HostAdmin& slave, const HostState& master) const;
  /// Whether somebody has taken this operation's claims away and made the slave the master in the maps. False
  /// if that cannot be found out: the maps cannot be changed either while ZooKeeper is away.
  bool PromotedMeanwhile() const;
  /// FAILED_PRECONDITION if somebody has fenced the host that is to take writes: of a promotion that only
  /// completes, at any time, else since it began. To be called once the host is claimed: who fences it from
  /// then on takes the claim away (Fence).
  absl::Status CheckNotFenced() const;
  /// Checks whether the other host can follow this one, and reports why not. FAILED_PRECONDITION if both take
  /// writes, or the other one has everything that this one has, and more, applied or not.
  ///
  /// slave  The state of the other host; null if it does not answer.
  absl::StatusOr<OtherHost> CheckOther(const HostState& master, const HostState* slave);
  /// Checks that the host, which has applied all that it has, has a database for each of the pair's shards;
  /// or that it lacks at most half of them, and a loss is accepted.
  absl::Status CheckDatabases(HostAdmin& slave) const;
  /// FAILED_PRECONDITION if acknowledged transactions may be lost, and accept_loss does not cover them.
  absl::Status CheckLoss(const HostState& slave);
  /// Returns what may be lost, in words; empty if nothing is.
  ///
  /// at_least  Is set to the number of transactions that are known to be lost.
  std::string DescribeLoss(const HostState& slave, uint64_t* at_least);
  /// Writes into the slave's note that it was inspected, and what it had, before it is cut off from its
  /// master: a promotion that is run again goes by that.
  absl::Status RecordInspection(const HostState& slave);
  /// Names the host the master in the maps.
  absl::Status Publish();
  /// Makes the slave, which has everything, the master: it stops following, the maps name it, and it takes
  /// writes. If this is stopped in between, another Promote goes on, or back as long as the maps have not
  /// changed.
  absl::Status TakeOver(HostAdmin& slave);
  /// Makes the other host follow this one, waits until it does, and reports the outcome, which it returns.
  ///
  /// slave    The other host, which is claimed.
  /// follows  Whether the other host follows already, so that it only has to catch up.
  bool Attach(HostAdmin& master, HostAdmin& slave, bool follows);
  absl::Status TryAttach(HostAdmin& master, HostAdmin& slave, bool follows);

  FleetOperator& fleet_;
  const PromoteOptions& options_;
  const PromotionPlan plan_;
  Note known_;  // the note about the host as it was before; empty if this only completes
  const Held held_;
};

}  // namespace kvstore::shardops
