#include "backends/mysql/driver/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "backend_api/end_of_wait.h"
#include "backend_api/outcome.h"
#include "base/thread_number.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How often a call that waits for a connection checks whether its caller is still there.
constexpr std::chrono::milliseconds kCheckCallEvery{50};

/// Says that no connection became free.
///
/// of_all  whether the limit for all hosts was reached, not the host's own.
/// time    for how long, " for 50 ms"; empty: it is not said.
std::string AllAreBusy(const PoolOptions& options, bool of_all, std::string_view time) {
  if (of_all) {
    return fmt::format(
        "all {} connections that this process may have to all hosts were busy{}; raise pool.max_total, if "
        "the servers' max_connections allows it for all processes together (docs/capacity.md)",
        options.max_total, time);
  }
  return fmt::format("all {} connections to it were busy{}; kv shards status says what runs there for long",
                     options.max_connections, time);
}

}  // namespace

bool HasTimedOut(Connection::Clock::duration elapsed, const PoolOptions& options) {
  constexpr std::chrono::milliseconds kClockStep{20};
  return elapsed + kClockStep >= std::chrono::seconds(options.read_timeout_s);
}

// ---- leases ----

Lease::~Lease() {
  if (connection_) pool_->GiveBack(std::move(connection_));
}

void Lease::FailAsNoMaster() {
  // The host has answered: this call may be the one that tries it while others leave it alone.
  pool_->breaker_.Succeeded();
  pool_->retired_before_ = Pool::Clock::now();
  pool_->Discard(std::move(connection_), absl::OkStatus());
}

void Lease::Fail(const absl::Status& why) { pool_->Discard(std::move(connection_), why); }

void Lease::Answered() { pool_->breaker_.Succeeded(); }

Hold::Hold(Pool& pool) : pool_(pool) {
  const size_t all = pool_.options_.pool.max_connections;
  if (all == 1) {
    status_ = absl::ResourceExhaustedError(
        "pool.max_connections is 1, and calls need that connection: a connection can be held for long, by a "
        "snapshot for example, if it is at least 2");
    return;
  }
  const size_t most = std::max<size_t>(1, all / 4);
  if (pool_.held_.fetch_add(1) < most) return;
  --pool_.held_;
  status_ = absl::ResourceExhaustedError(
      fmt::format("{} of its {} connections are held for long already, by snapshots for example, and no more "
                  "may be; wait until one is released, or raise pool.max_connections",
                  most, all));
}

Hold::~Hold() {
  if (status_.ok()) --pool_.held_;
}

// ---- idle connections ----

Pool::Pool(Host host, const MySqlOptions& options, ConnectionBudget& budget)
    : host_(std::move(host)),
      options_(options),
      budget_(budget),
      breaker_(host_.ToString(), options.breaker) {
  budget_.Add(*this);
}

Pool::~Pool() {
  budget_.Remove(*this);
  Close();
}

size_t Pool::size() const {
  const MutexLock lock(mutex_);
  return size_;
}

size_t Pool::idle() const {
  const MutexLock lock(mutex_);
  return idle_.size() + static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
           return slot.connection.load(std::memory_order_relaxed) != nullptr;
         }));
}

void Pool::CountClosed(size_t count) {
  {
    const MutexLock lock(mutex_);
    size_ -= count;
  }
  budget_.Release(count);
  changed_.notify_all();
}

Pool::ConnectionPtr Pool::KeepInSlot(ConnectionPtr connection) {
  Slot& slot = slots_[ThreadNumber() % kSlots];
  Connection* empty = nullptr;
  if (waiting_ > 0 || closed_ || !slot.connection.compare_exchange_strong(empty, connection.get()))
    return connection;
  // The slot has it now.
  static_cast<void>(connection.release());
  // A thread that began to wait, or closed the pool, before it could see the exchange has missed this
  // connection: take it back, and hand it on under the lock.
  if (waiting_ > 0 || closed_) return ConnectionPtr(slot.connection.exchange(nullptr));
  return nullptr;
}

Pool::ConnectionPtr Pool::DequeueIdle() {
  if (!idle_.empty()) {
    ConnectionPtr connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  // Slots are loaded before they are exchanged: an exchange takes the cache line from the thread that uses
  // the slot.
  for (Slot& slot : slots_) {
    if (slot.connection.load() == nullptr) continue;
    if (ConnectionPtr connection{slot.connection.exchange(nullptr)}) return connection;
  }
  return nullptr;
}

Pool::Fitness Pool::FitnessOf(Connection& connection) const {
  const auto now = Clock::now();
  if (connection.opened_at() <= retired_before_.load(std::memory_order_relaxed)) return Fitness::kUnfit;
  // The lifetime differs by up to a tenth either way with the connection's address, so that connections are
  // not all replaced at once.
  const uint64_t spread = reinterpret_cast<uintptr_t>(&connection) / 64 % 201;
  if (now - connection.opened_at() > std::chrono::milliseconds(options_.pool.lifetime_s * (900 + spread)))
    return Fitness::kUnfit;
  const bool idle_for_long =
      now - connection.used_at > std::chrono::milliseconds(options_.pool.check_after_ms);
  if (!idle_for_long && connection.used_at >= suspect_before_.load(std::memory_order_relaxed))
    return Fitness::kGood;
  if (connection.Alive()) return Fitness::kGood;
  return HasTimedOut(Clock::now() - now, options_.pool) ? Fitness::kHangs : Fitness::kUnfit;
}

absl::Status Pool::KeepIfGood(ConnectionPtr& connection) {
  switch (FitnessOf(*connection)) {
    case Fitness::kGood:
      return absl::OkStatus();
    case Fitness::kUnfit:
      // The connection is too old, or the server closed it while it was idle, which says little about the
      // server.
      connection.reset();
      CountClosed(1);
      return CheckCall();
    case Fitness::kHangs:
      break;
  }
  // The other idle connections would each cost this call, or others, as much time again.
  retired_before_ = Clock::now();
  const absl::Status hangs = absl::UnavailableError(fmt::format(
      "no answer within {} s to the test of a connection that was idle", options_.pool.read_timeout_s));
  Discard(std::move(connection), hangs);
  if (breaker_.open()) return AsTold(hangs);
  // The host itself may be well: a firewall can have forgotten the connection. A new one shows it.
  return CheckCall();
}

absl::Status Pool::AsTold(const absl::Status& failure) const {
  if (!absl::IsUnavailable(failure) || !breaker_.open() || IsMigrating(failure)) return failure;
  return absl::UnavailableError(
      fmt::format("left alone for a while after it failed: {}", std::string(failure.message())));
}

bool Pool::CloseOneIdle() {
  ConnectionPtr connection;
  {
    const MutexLock lock(mutex_);
    connection = DequeueIdle();
  }
  if (!connection) return false;
  connection.reset();
  CountClosed(1);
  return true;
}

void Pool::CloseLongIdle() {
  const auto idle_since = Clock::now() - std::chrono::seconds(options_.pool.idle_s);
  std::vector<ConnectionPtr> unused;
  {
    const MutexLock lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.connection.load(std::memory_order_relaxed) == nullptr) continue;
      if (ConnectionPtr connection{slot.connection.exchange(nullptr)}) idle_.push_back(std::move(connection));
    }
    std::sort(idle_.begin(), idle_.end(),
              [](const ConnectionPtr& a, const ConnectionPtr& b) { return a->used_at < b->used_at; });
    size_t left = size_;
    while (!idle_.empty() && left > options_.pool.min_connections && idle_.front()->used_at < idle_since) {
      unused.push_back(std::move(idle_.front()));
      idle_.erase(idle_.begin());
      --left;
    }
  }
  const size_t closed = unused.size();
  unused.clear();
  CountClosed(closed);
}

// ---- out and back ----

absl::StatusOr<Lease> Pool::Acquire() {
  if (auto status = breaker_.Allow(); !status.ok()) return status;
  ConnectionPtr connection(slots_[ThreadNumber() % kSlots].connection.exchange(nullptr));
  if (connection) {
    if (auto status = KeepIfGood(connection); !status.ok()) return status;
    if (connection) return Lease(*this, std::move(connection));
  }
  // The pool's alone: whether the call's has passed is for CheckCall to say.
  const auto deadline = CallLimits::Clock::now() + std::chrono::milliseconds(options_.pool.wait_ms);
  bool none_left = false;  // the limit for all hosts was reached
  for (;;) {
    bool make = false;
    {
      MutexLock lock(mutex_);
      connection = DequeueIdle();
      if (!connection && !none_left && size_ < options_.pool.max_connections) {
        ++size_;
        make = true;
      } else if (!connection) {
        ++waiting_;
        // From here on no thread puts a connection into its slot; but one may just have done so.
        connection = DequeueIdle();
        if (!connection) {
          lock.WaitUntil(changed_,
                         EarlierDeadline(std::min(deadline, CallLimits::Clock::now() + kCheckCallEvery)));
          connection = DequeueIdle();
        }
        --waiting_;
        if (!connection) {
          if (auto over = CheckCall(); !over.ok())
            return EndOfWait(over, AllAreBusy(options_.pool, none_left, ""));
          if (CallLimits::Clock::now() >= deadline) {
            return absl::ResourceExhaustedError(
                AllAreBusy(options_.pool, none_left, fmt::format(" for {} ms", options_.pool.wait_ms)));
          }
        }
        // Other calls may have opened the breaker meanwhile.
        if (!connection && breaker_.open()) {
          if (auto status = breaker_.Allow(); !status.ok()) return status;
        }
        none_left = false;
      }
    }
    if (make && !budget_.Take(*this)) {
      // The next turn waits, for a connection to this host or for a moment, and then asks again.
      none_left = true;
      const MutexLock lock(mutex_);
      --size_;
      continue;
    }
    if (connection) {
      if (auto status = KeepIfGood(connection); !status.ok()) return status;
      if (connection) return Lease(*this, std::move(connection));
      // It was closed: the next one is tried.
    } else if (make) {
      return OpenNew();
    }
  }
}

absl::StatusOr<Lease> Pool::OpenNew() {
  auto opened = Connection::Open(host_, options_);
  if (opened.ok()) return Lease(*this, *std::move(opened));
  // A host that is read-only or offline has answered, and not failed: the breaker must learn it, because this
  // call may be the one that tries the host.
  if (IsMigrating(opened.status())) breaker_.Succeeded();
  Discard(nullptr, IsMigrating(opened.status()) ? absl::OkStatus() : opened.status());
  return AsTold(opened.status());
}

void Pool::GiveBack(ConnectionPtr connection) {
  breaker_.Succeeded();
  if (connection->in_transaction()) return Discard(std::move(connection), absl::OkStatus());
  connection->used_at = Clock::now();
  connection = KeepInSlot(std::move(connection));
  if (!connection) return;
  {
    const MutexLock lock(mutex_);
    if (!closed_) idle_.push_back(std::move(connection));
  }
  if (connection) {
    connection.reset();
    CountClosed(1);
  }
  changed_.notify_one();
}

void Pool::Discard(ConnectionPtr connection, const absl::Status& why) {
  if (!why.ok()) {
    breaker_.Failed(why);
    // The same failure may have broken the other connections too: they are tried before they are used.
    suspect_before_ = Clock::now();
  }
  connection.reset();
  // This wakes all who wait: if the breaker has opened, they fail at once.
  CountClosed(1);
}

void Pool::Close() {
  closed_ = true;
  std::vector<ConnectionPtr> idle;
  {
    const MutexLock lock(mutex_);
    while (ConnectionPtr connection = DequeueIdle()) idle.push_back(std::move(connection));
  }
  const size_t closed = idle.size();
  idle.clear();
  CountClosed(closed);
}

}  // namespace kvstore::mysql
