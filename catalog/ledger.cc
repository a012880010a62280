#include "catalog/ledger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "absl/strings/cord.h"
#include "base/clock.h"
#include "base/process.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

constexpr char kPassing[] = "kvstore/passing-operation";
/// How often BeginWithin retries.
constexpr std::chrono::milliseconds kBeginRetryInterval{100};

/// Whether two operations conflict; `where` is then set to the claim of `other` that is in the way.
bool Conflict(const Operation& one, const Operation& other, const Claim** where) {
  for (const Claim& claim : other.claims) {
    for (const Claim& wanted : one.claims) {
      if (!wanted.ConflictsWith(claim)) continue;
      *where = &claim;
      return true;
    }
  }
  return false;
}

std::string Refusal(const Operation& wanted, const Operation& holder, const Claim& where) {
  std::string text =
      fmt::format("{}: cannot begin now: {} has {}.", wanted.what, ToString(holder), where.ToString());
  if (holder.lasting) {
    text += fmt::format(" That lasts until it is finished or given up: {}", holder.go_on);
  } else {
    text += fmt::format(
        " That ends by itself: run the command again then. If its process hangs: kv shards release {}",
        holder.id);
  }
  return text + "\nkv shards operations lists all that is under way";
}

}  // namespace

// ---- claims ----

Claim Claim::Dataset(std::string_view name, ClaimMode mode) {
  return {.kind = Kind::kDataset, .mode = mode, .name = std::string(name)};
}

Claim Claim::Shards(ShardSpace space, uint32_t first, uint32_t last, ClaimMode mode) {
  return {.kind = Kind::kShards, .mode = mode, .space = space, .first = first, .last = last};
}

Claim Claim::Homes(ShardSpace space, uint32_t first, uint32_t last, ClaimMode mode) {
  return {.kind = Kind::kHomes, .mode = mode, .space = space, .first = first, .last = last};
}

Claim Claim::Host(std::string_view name, ClaimMode mode) {
  return {.kind = Kind::kHost, .mode = mode, .name = std::string(name)};
}

bool Claim::ConflictsWith(const Claim& other) const {
  if (kind != other.kind) return false;
  const bool named = kind == Kind::kDataset || kind == Kind::kHost;
  const bool overlap = named ? name == other.name || name.empty() || other.name.empty()
                             : space == other.space && first <= other.last && other.first <= last;
  if (!overlap) return false;
  if (mode == ClaimMode::kExclusive || other.mode == ClaimMode::kExclusive) return true;
  return mode == ClaimMode::kUpdate && other.mode == ClaimMode::kUpdate;
}

std::string Claim::ToString() const {
  switch (kind) {
    case Kind::kDataset:
      return name.empty() ? "all datasets" : fmt::format("dataset '{}'", name);
    case Kind::kHost:
      return name.empty() ? "all hosts" : fmt::format("host {}", name);
    case Kind::kShards:
    case Kind::kHomes:
      break;
  }
  const std::string_view of = kind == Kind::kHomes ? "the homes of " : "";
  const std::string_view space_name = ShardSpaceName(space);
  if (first == 0 && last == kLastShard) return fmt::format("{}all {} shards", of, space_name);
  return fmt::format("{}shards {} {}-{}", of, space_name, first, last);
}

// ---- decisions ----

std::string ToString(const Operation& operation) {
  const auto since = static_cast<std::time_t>(operation.since_ms / 1000);
  return fmt::format("'{}', of {}, since {:%Y-%m-%d %H:%M:%S} UTC (operation {}),", operation.what,
                     operation.who, fmt::gmtime(since), operation.id);
}

LedgerDecision Decide(const Operation& wanted, std::span<const Operation> held, bool over) {
  LedgerDecision decision;
  const Operation* same = nullptr;
  const Operation* passing = nullptr;
  const Operation* lasting = nullptr;
  const Claim* where_passing = nullptr;
  const Claim* where_lasting = nullptr;
  for (const Operation& other : held) {
    if (wanted.lasting && other.lasting && wanted.what == other.what) {
      same = &other;
      decision.same = other.id;
      continue;
    }
    const Claim* where = nullptr;
    if (!Conflict(wanted, other, &where)) continue;
    if (other.lasting) {
      if (over || lasting != nullptr) continue;
      lasting = &other;
      where_lasting = where;
    } else if (over || other.yields || ProcessHasEnded(other.process)) {
      decision.gone.push_back(other.id);
    } else if (passing == nullptr) {
      passing = &other;
      where_passing = where;
    }
  }
  // The refusal names the operation that takes longest to end: a lasting one first.
  if (lasting != nullptr) {
    decision.refused = absl::FailedPreconditionError(Refusal(wanted, *lasting, *where_lasting));
  } else if (passing != nullptr) {
    decision.refused = absl::FailedPreconditionError(Refusal(wanted, *passing, *where_passing));
    decision.refused.SetPayload(kPassing, absl::Cord());
  }
  if (same != nullptr && wanted.is_new) {
    decision.refused = absl::AlreadyExistsError(fmt::format("{} is held already", ToString(*same)));
  }
  return decision;
}

bool EndsByItself(const absl::Status& status) { return status.GetPayload(kPassing).has_value(); }

// ---- Held ----

Held& Held::operator=(Held&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(id_, other.id_);
  std::swap(lasting_, other.lasting_);
  std::swap(before_, other.before_);
  return *this;
}

Held::~Held() {
  if (!lasting_) End().IgnoreError();
}

absl::Status Held::Check() const {
  if (id_.empty()) return absl::AbortedError("the operation has ended");
  return ledger_->Check(id_);
}

absl::Status Held::End() {
  if (id_.empty()) return absl::OkStatus();
  const std::string id = std::exchange(id_, "");
  return ledger_->End(id);
}

// ---- what all ledgers share ----

namespace {

/// Sets the fields that say who begins the operation, and when.
Operation Completed(Operation operation, const Ledger& ledger) {
  if (operation.who.empty()) operation.who = ledger.who();
  operation.since_ms = WallClockMs();
  operation.process = ProcessIdentity();
  return operation;
}

}  // namespace

std::string Ledger::who() const { return ProcessName(); }

absl::StatusOr<Held> Ledger::Begin(Operation operation) {
  return AcquireClaims(Completed(std::move(operation), *this), /*over=*/false);
}

absl::StatusOr<Held> Ledger::BeginOver(Operation operation) {
  return AcquireClaims(Completed(std::move(operation), *this), /*over=*/true);
}

absl::StatusOr<Held> Ledger::BeginWithin(const Operation& operation, std::chrono::milliseconds wait) {
  const auto deadline = EarlierDeadline(std::chrono::steady_clock::now() + wait);
  for (;;) {
    auto hold = Begin(operation);
    const auto left = deadline - std::chrono::steady_clock::now();
    if (!EndsByItself(hold.status()) || left <= left.zero() || !CheckCall().ok()) return hold;
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(kBeginRetryInterval, left));
  }
}

absl::Status Ledger::EndLasting(std::string_view what) {
  const auto all = List();
  if (!all.ok()) return all.status();
  // There is more than one where two ledgers are joined, and another process has begun it in both.
  for (const Operation& operation : *all) {
    if (!operation.lasting || operation.what != what) continue;
    if (auto status = End(operation.id); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Operation> Ledger::Release(std::string_view id, bool force) {
  const auto all = List();
  if (!all.ok()) return all.status();
  const auto found =
      std::find_if(all->begin(), all->end(), [&](const Operation& one) { return one.id == id; });
  if (found == all->end()) {
    return absl::NotFoundError(fmt::format(
        "operation: there is none with the ID {}; kv shards operations lists those that there are", id));
  }
  if (!force && found->lasting) {
    return absl::FailedPreconditionError(fmt::format(
        "{} outlives its process: {}\nIf there is nothing left of it that could be given up, --force "
        "takes its claims away",
        ToString(*found), found->go_on));
  }
  if (!force && !ProcessHasEnded(found->process)) {
    return absl::FailedPreconditionError(
        fmt::format("{} may still be at work: its process lives, or its session with ZooKeeper has not run "
                    "out yet; if it has died, its claims go within seconds by themselves. If it hangs, stop "
                    "it; --force takes its claims away all the same, and it stops at the latest when it "
                    "would publish something",
                    ToString(*found)));
  }
  if (auto status = End(id); !status.ok()) return status;
  return *found;
}

// ---- in memory ----

namespace {

std::string IdOf(uint64_t number) { return fmt::format("{:08x}", number); }

}  // namespace

absl::StatusOr<Held> MemoryLedger::AcquireClaims(Operation operation, bool over) {
  const MutexLock lock(mutex_);
  std::vector<Operation> held;
  for (const auto& [number, other] : by_age_) held.push_back(other);
  const LedgerDecision decision = Decide(operation, held, over);
  if (!decision.refused.ok()) return decision.refused;
  std::erase_if(by_age_, [&](const auto& entry) {
    return std::find(decision.gone.begin(), decision.gone.end(), entry.second.id) != decision.gone.end();
  });
  operation.id = IdOf(++begun_);
  Held hold(this, operation.id, operation.lasting, decision.same);
  for (auto& [number, other] : by_age_) {
    if (other.id != decision.same) continue;
    operation.since_ms = other.since_ms;
    other = std::move(operation);
    return hold;
  }
  by_age_.emplace(begun_, std::move(operation));
  return hold;
}

absl::Status MemoryLedger::Check(std::string_view id) {
  const MutexLock lock(mutex_);
  for (const auto& [number, operation] : by_age_) {
    if (operation.id == id) return absl::OkStatus();
  }
  return absl::AbortedError(fmt::format(
      "operation {} is not held any more: somebody has begun it again, or took its claims away", id));
}

absl::Status MemoryLedger::End(std::string_view id) {
  const MutexLock lock(mutex_);
  std::erase_if(by_age_, [&](const auto& entry) { return entry.second.id == id; });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Operation>> MemoryLedger::List() {
  const MutexLock lock(mutex_);
  std::vector<Operation> all;
  for (const auto& [number, operation] : by_age_) all.push_back(operation);
  return all;
}

// ---- JoinedLedger ----

namespace {

/// Whether the claim concerns the fleet, which other catalogs share.
bool OfFleet(const Claim& claim) { return claim.kind != Claim::Kind::kDataset; }

}  // namespace

absl::StatusOr<Held> JoinedLedger::AcquireClaims(Operation operation, bool over) {
  const bool both =
      fleet_ != nullptr && std::any_of(operation.claims.begin(), operation.claims.end(), OfFleet);
  if (!both) return own_.AcquireClaims(std::move(operation), over);
  Operation there = operation;
  // The names of datasets have a meaning in their own catalog only.
  std::erase_if(there.claims, [](const Claim& claim) { return !OfFleet(claim); });
  auto first = own_.AcquireClaims(operation, over);
  if (!first.ok()) return first;
  auto second = fleet_->AcquireClaims(std::move(there), over);
  if (!second.ok() && !first->taken_over()) {
    first->End().IgnoreError();
    return second.status();
  }
  const MutexLock lock(mutex_);
  if (!second.ok()) {
    // The own operation was taken over and has a new ID; its counterpart in the fleet's ledger is unchanged.
    if (auto before = counterparts_.extract(first->before()); !before.empty()) {
      before.key() = first->id();
      counterparts_.insert(std::move(before));
    }
    return second.status();
  }
  counterparts_.erase(first->before());
  const std::string before = first->taken_over() ? first->before() : second->before();
  const std::string id = first->Detach();
  counterparts_.insert_or_assign(id, Counterpart{second->Detach(), operation.lasting});
  return Held(this, id, operation.lasting, before);
}

JoinedLedger::Counterpart JoinedLedger::FindCounterpart(std::string_view id) {
  const MutexLock lock(mutex_);
  const auto found = counterparts_.find(id);
  return found == counterparts_.end() ? Counterpart{} : found->second;
}

absl::Status JoinedLedger::Check(std::string_view id) {
  const Counterpart there = FindCounterpart(id);
  if (auto status = own_.Check(id); !status.ok() || there.id.empty()) return status;
  return fleet_->Check(there.id);
}

absl::Status JoinedLedger::End(std::string_view id) {
  const Counterpart there = FindCounterpart(id);
  if (there.id.empty()) {
    // An ID that List returned may be that of an operation in the fleet's ledger only.
    const bool elsewhere = fleet_ != nullptr && absl::IsAborted(own_.Check(id));
    return elsewhere ? fleet_->End(id) : own_.End(id);
  }
  absl::Status status = fleet_->End(there.id);
  // If a lasting operation could not be ended in the fleet's ledger, it stays in both, so that it can be
  // ended again. For others the fleet's ledger retries by itself (RetryEnds).
  if (!status.ok() && there.lasting) return status;
  {
    const MutexLock lock(mutex_);
    counterparts_.erase(std::string(id));
  }
  const absl::Status ended = own_.End(id);
  return status.ok() ? ended : status;
}

void JoinedLedger::RetryEnds() {
  own_.RetryEnds();
  if (fleet_ != nullptr) fleet_->RetryEnds();
}

absl::StatusOr<std::vector<Operation>> JoinedLedger::List() {
  auto all = own_.List();
  if (fleet_ == nullptr || !all.ok()) return all;
  auto more = fleet_->List();
  if (!more.ok()) return more;
  const MutexLock lock(mutex_);
  for (Operation& operation : *more) {
    const bool known = std::any_of(counterparts_.begin(), counterparts_.end(),
                                   [&](const auto& entry) { return entry.second.id == operation.id; });
    if (!known) all->push_back(std::move(operation));
  }
  return all;
}

}  // namespace kvstore
