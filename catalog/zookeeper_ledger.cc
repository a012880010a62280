#include "catalog/zookeeper_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "catalog/ledger_json.h"
#include "json/json_text.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

/// The name of the resource that ledger_mutex_ guards, for the error of a call that waited for it too long.
constexpr std::string_view kTheLedger = "the ledger of operations";

/// How often an attempt may fail because others changed the ledger meanwhile.
constexpr int kAttempts = 100;

std::string RandomId() {
  std::random_device device;
  return fmt::format("{:08x}", device());
}

/// Stands for a node that this version cannot read. It may claim anything, so it conflicts with everything.
Operation Unreadable(const absl::Status& why) {
  Operation operation{
      .what = fmt::format("an operation that this version cannot read: {}", std::string(why.message())),
      .who = "somebody",
      .lasting = true,
      .go_on = "by the version of kv that began it"};
  const ClaimMode mode = ClaimMode::kExclusive;
  operation.claims = {Claim::Dataset("", mode), Claim::Host("", mode)};
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    operation.claims.push_back(Claim::Shards(space, 0, Claim::kLastShard, mode));
    operation.claims.push_back(Claim::Homes(space, 0, Claim::kLastShard, mode));
  }
  return operation;
}

/// Whether a transaction failed because others changed the ledger meanwhile.
bool WasOvertaken(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status) || absl::IsAlreadyExists(status);
}

}  // namespace

absl::Status ZooKeeperLedger::Refresh() {
  version_ = -1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // This session's server may lag behind what others have begun.
    if (attempt > 0) {
      if (auto status = zookeeper_.Sync(folder_); !status.ok()) return status;
    }
    auto listing = zookeeper_.List(folder_);
    if (absl::IsNotFound(listing.status())) {
      absl::Status made = zookeeper_.Create(folder_, "", /*open=*/true);
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
      continue;
    }
    if (!listing.ok()) return listing.status();
    const std::set<std::string> names(listing->names.begin(), listing->names.end());
    std::erase_if(known_, [&](const auto& one) { return !names.contains(one.first); });
    bool whole = true;
    for (const std::string& id : names) {
      if (known_.contains(id)) continue;
      const auto node = zookeeper_.Get(PathOf(id), /*watch=*/false);
      if (absl::IsNotFound(node.status())) {
        whole = false;  // The operation has ended, or this session's server lags behind.
        break;
      }
      if (!node.ok()) return node.status();
      auto operation = DecodeOperation(node->data);
      if (!operation.ok()) operation = Unreadable(operation.status());
      operation->id = id;
      known_.emplace(id, *std::move(operation));
    }
    if (!whole) continue;
    version_ = listing->version;
    return absl::OkStatus();
  }
  return absl::UnavailableError("the ledger of operations changes faster than it can be read");
}

void ZooKeeperLedger::RemoveLeftOver() {
  std::vector<std::string> ids;
  {
    const MutexLock lock(left_mutex_);
    ids.swap(left_over_);
  }
  while (!ids.empty()) {
    const absl::Status status = zookeeper_.Delete(PathOf(ids.back()));
    if (!status.ok() && !absl::IsNotFound(status)) break;
    ids.pop_back();
  }
  for (std::string& id : ids) AddLeftOver(std::move(id));
}

void ZooKeeperLedger::AddLeftOver(std::string id) {
  const MutexLock lock(left_mutex_);
  left_over_.push_back(std::move(id));
}

void ZooKeeperLedger::RetryEnds() { RemoveLeftOver(); }

absl::StatusOr<Held> ZooKeeperLedger::AcquireClaims(Operation operation, bool over) {
  const auto lock = ledger_mutex_.Acquire(kTheLedger);
  if (!lock.ok()) return lock.status();
  RemoveLeftOver();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const bool fresh = version_ < 0;
    if (fresh) {
      if (auto status = Refresh(); !status.ok()) return status;
    }
    std::vector<Operation> held;
    for (const auto& [id, other] : known_) held.push_back(other);
    const LedgerDecision decision = Decide(operation, held, over);
    if (!decision.refused.ok() || !decision.gone.empty()) {
      // The operations that are in the way may have ended since they were read.
      if (!fresh) {
        version_ = -1;
        continue;
      }
      if (!decision.refused.ok()) return decision.refused;
    }
    const bool again = !decision.same.empty();
    operation.id = RandomId();
    if (again) operation.since_ms = known_.at(decision.same).since_ms;
    using Kind = ZooKeeperStep::Kind;
    std::vector<ZooKeeperStep> steps = {{.kind = Kind::kSet, .path = folder_, .version = version_}};
    for (const std::string& id : decision.gone) steps.push_back({.kind = Kind::kDelete, .path = PathOf(id)});
    // Whoever held the operation before cannot publish anything from here on.
    if (again) steps.push_back({.kind = Kind::kDelete, .path = PathOf(decision.same)});
    steps.push_back({.kind = operation.lasting ? Kind::kCreate : Kind::kCreateEphemeral,
                     .path = PathOf(operation.id),
                     .data = TextOf(OperationToJson(operation))});
    AddConditions(steps);
    const absl::Status status = zookeeper_.Change(std::move(steps));
    if (status.ok()) {
      ++version_;
      for (const std::string& id : decision.gone) known_.erase(id);
      if (again) known_.erase(decision.same);
      known_.insert_or_assign(operation.id, operation);
      return Held(this, operation.id, operation.lasting, decision.same);
    }
    version_ = -1;
    if (WasOvertaken(status)) {
      if (auto conditions = CheckConditions(); !conditions.ok()) return conditions;
      continue;
    }
    // The node may have been created all the same. A lasting operation is then taken over when it is begun
    // again; the node of another one must be removed.
    if (!operation.lasting) AddLeftOver(operation.id);
    return status;
  }
  return absl::UnavailableError(
      fmt::format("{}: others begin operations faster than this one can; try again", operation.what));
}

absl::Status ZooKeeperLedger::CheckConditions() {
  if (conditions_.empty()) return absl::OkStatus();
  absl::Status status = zookeeper_.Change(conditions_);
  if (!absl::IsFailedPrecondition(status) && !absl::IsNotFound(status)) return status;
  return absl::AbortedError(
      fmt::format("{} has changed in ZooKeeper: another process has taken over what this one did",
                  conditions_.front().path));
}

absl::Status ZooKeeperLedger::Check(std::string_view id) {
  // Callers that cannot confirm that they hold an operation undo what they have done. So this is asked
  // without the deadline of the thread's call.
  const ZooKeeper::IgnoreDeadline ignore_deadline;
  absl::Status status = zookeeper_.Get(PathOf(id), /*watch=*/false).status();
  if (status.ok()) return CheckConditions();
  if (!absl::IsNotFound(status)) return status;
  return absl::AbortedError(fmt::format(
      "operation {} is not held any more: its session with ZooKeeper has ended, somebody has begun it again, "
      "or somebody took its claims away (kv shards release)",
      id));
}

absl::Status ZooKeeperLedger::End(std::string_view id) {
  const ZooKeeper::IgnoreDeadline ignore_deadline;
  absl::Status status = zookeeper_.Delete(PathOf(id));
  const DeadlineMutex::Guard lock = ledger_mutex_.AcquireWithoutDeadline();
  const auto known = known_.find(id);
  const bool lasting = known != known_.end() && known->second.lasting;
  if (known != known_.end()) known_.erase(known);
  if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
  // It may be there still, and is read again before anything else is begun. A lasting operation may belong to
  // another process by the time when its node could be removed.
  version_ = -1;
  if (!lasting) AddLeftOver(std::string(id));
  return status;
}

absl::StatusOr<std::vector<Operation>> ZooKeeperLedger::List() {
  const auto lock = ledger_mutex_.Acquire(kTheLedger);
  if (!lock.ok()) return lock.status();
  RemoveLeftOver();
  if (auto status = zookeeper_.Sync("/"); !status.ok()) return status;
  if (auto status = Refresh(); !status.ok()) return status;
  std::vector<Operation> all;
  for (const auto& [id, operation] : known_) all.push_back(operation);
  std::sort(all.begin(), all.end(), [](const Operation& one, const Operation& other) {
    return std::tie(one.since_ms, one.id) < std::tie(other.since_ms, other.id);
  });
  return all;
}

absl::Status ZooKeeperLedger::Change(const Held& hold, std::vector<ZooKeeperStep> steps) {
  if (hold.id().empty()) return absl::AbortedError("the operation has ended");
  steps.push_back({.kind = ZooKeeperStep::Kind::kCheck, .path = PathOf(hold.id())});
  AddConditions(steps);
  absl::Status status = zookeeper_.Change(std::move(steps));
  if (absl::IsFailedPrecondition(status)) {
    if (auto conditions = CheckConditions(); absl::IsAborted(conditions)) return conditions;
  }
  if (!absl::IsNotFound(status)) return status;
  if (auto held = Check(hold.id()); absl::IsAborted(held)) return held;
  return status;
}

}  // namespace kvstore
