#include "backends/mysql/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_number.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/moved.h"

namespace kvstore::mysql {
// ---- leases ----

Lease::~Lease() {
  if (connection_) pool_->GiveBack(std::move(connection_));
}

void Lease::Demoted() {
  pool_->retired_before_ = Pool::Clock::now();
  pool_->GiveUp(std::move(connection_), absl::OkStatus());
}

void Lease::Fail(const absl::Status& why) { pool_->GiveUp(std::move(connection_), why); }

// ---- idle connections ----

Pool::~Pool() { Close(); }

size_t Pool::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

size_t Pool::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_.size() + static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
           return slot.connection.load(std::memory_order_relaxed) != nullptr;
         }));
}

void Pool::Closed(size_t count) {
  {
    const std::lock_guard lock(mutex_);
    size_ -= count;
  }
  changed_.notify_all();
}

Pool::Held Pool::Park(Held connection) {
  Slot& slot = slots_[ThreadNumber() % kSlots];
  Connection* empty = nullptr;
  if (waiting_ > 0 || closed_ || !slot.connection.compare_exchange_strong(empty, connection.get()))
    return connection;
  // The slot has it now.
  static_cast<void>(connection.release());
  // Whoever began to wait, or closed the pool, before the exchange could be seen has not found it: take it
  // back.
  if (waiting_ > 0 || closed_) return Held(slot.connection.exchange(nullptr));
  return nullptr;
}

Pool::Held Pool::TakeIdle() {
  if (!idle_.empty()) {
    Held connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  // A look first: exchanges would take the cache line from the thread that uses the slot.
  for (Slot& slot : slots_) {
    if (slot.connection.load() == nullptr) continue;
    if (Held connection{slot.connection.exchange(nullptr)}) return connection;
  }
  return nullptr;
}

bool Pool::IsGood(Connection& connection) const {
  const auto now = Clock::now();
  if (connection.opened_at() <= retired_before_.load(std::memory_order_relaxed)) return false;
  // Each has a lifetime of its own, by its address, so that they are not all replaced at once.
  const uint64_t spread = reinterpret_cast<uintptr_t>(&connection) / 64 % 201;
  if (now - connection.opened_at() > std::chrono::milliseconds(options_.pool.lifetime_s * (900 + spread)))
    return false;
  const bool idle_for_long =
      now - connection.used_at > std::chrono::milliseconds(options_.pool.check_after_ms);
  if (!idle_for_long && connection.used_at >= suspect_before_.load(std::memory_order_relaxed)) return true;
  return connection.Alive();
}

void Pool::Trim() {
  const auto now = Clock::now();
  auto due = trim_at_.load(std::memory_order_relaxed);
  const auto idle = std::chrono::seconds(options_.pool.idle_s);
  if (now < due || !trim_at_.compare_exchange_strong(due, now + idle / 2)) return;
  std::vector<Held> unused;
  {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      if (Held connection{slot.connection.exchange(nullptr)}) idle_.push_back(std::move(connection));
    }
    std::sort(idle_.begin(), idle_.end(),
              [](const Held& a, const Held& b) { return a->used_at < b->used_at; });
    while (!idle_.empty() && size_ > options_.pool.min_connections && now - idle_.front()->used_at > idle) {
      unused.push_back(std::move(idle_.front()));
      idle_.erase(idle_.begin());
      --size_;
    }
  }
}

// ---- out and back ----

absl::StatusOr<Lease> Pool::Acquire() {
  if (auto status = breaker_.Allow(); !status.ok()) return status;
  Held connection(slots_[ThreadNumber() % kSlots].connection.exchange(nullptr));
  if (connection) {
    if (IsGood(*connection)) return Lease(*this, std::move(connection));
    connection.reset();
    Closed(1);
  }
  const auto deadline = Clock::now() + LeftOfCall(std::chrono::milliseconds(options_.pool.wait_ms));
  for (;;) {
    bool make = false;
    {
      std::unique_lock lock(mutex_);
      connection = TakeIdle();
      if (!connection && size_ < options_.pool.max_connections) {
        ++size_;
        make = true;
      } else if (!connection) {
        ++waiting_;
        // From here on nobody parks one; but one may just have been.
        connection = TakeIdle();
        const bool late = !connection && changed_.wait_until(lock, deadline) == std::cv_status::timeout;
        if (!connection) connection = TakeIdle();
        --waiting_;
        if (!connection && late) {
          if (auto status = CheckCall(); !status.ok()) return status;
          return absl::ResourceExhaustedError(
              fmt::format("all {} connections to it were busy for {} ms; "
                          "kv shards status says what runs there for long",
                          options_.pool.max_connections, options_.pool.wait_ms));
        }
        // The others may have found out meanwhile that the host fails.
        if (!connection && breaker_.open()) {
          if (auto status = breaker_.Allow(); !status.ok()) return status;
        }
      }
    }
    if (connection) {
      if (IsGood(*connection)) return Lease(*this, std::move(connection));
      // It is old, or the server closed it while it was idle, which says little about the server: the next
      // one.
      connection.reset();
      Closed(1);
    } else if (make) {
      auto opened = Connection::Open(host_, options_);
      if (opened.ok()) return Lease(*this, *std::move(opened));
      // That it is read-only is no failure of the host.
      GiveUp(nullptr, IsMoving(opened.status()) ? absl::OkStatus() : opened.status());
      // In the breaker's words, so that a host that is down is told in the same way each time.
      if (absl::IsUnavailable(opened.status()) && breaker_.open() && !IsMoving(opened.status())) {
        return absl::UnavailableError(fmt::format("left alone for a while after it failed: {}",
                                                  std::string(opened.status().message())));
      }
      return opened.status();
    }
  }
}

void Pool::GiveBack(Held connection) {
  breaker_.Succeeded();
  if (connection->in_transaction()) return GiveUp(std::move(connection), absl::OkStatus());
  connection->used_at = Clock::now();
  if (connection->used_at > trim_at_.load(std::memory_order_relaxed)) Trim();
  connection = Park(std::move(connection));
  if (!connection) return;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      idle_.push_back(std::move(connection));
    } else {
      --size_;
    }
  }
  changed_.notify_one();
}

void Pool::GiveUp(Held connection, const absl::Status& why) {
  if (!why.ok()) {
    breaker_.Failed(why);
    // What one connection met the others may have met too.
    suspect_before_ = Clock::now();
  }
  connection.reset();
  // All who wait are told: if the host is now left alone, they need not.
  Closed(1);
}

void Pool::Close() {
  closed_ = true;
  std::vector<Held> idle;
  const std::lock_guard lock(mutex_);
  while (Held connection = TakeIdle()) idle.push_back(std::move(connection));
  size_ -= idle.size();
}

}  // namespace kvstore::mysql
