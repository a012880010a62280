#include "backends/mysql/pool.h"

#include <fmt/format.h>

#include <utility>

namespace kvstore::mysql {

Lease::~Lease() {
  if (connection_) pool_->GiveBack(std::move(connection_));
}

void Lease::Fail(const absl::Status& why) { pool_->GiveUp(std::move(connection_), why); }

size_t Pool::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

std::unique_ptr<Connection> Pool::TakeIdle(std::vector<std::unique_ptr<Connection>>& stale) {
  const auto now = Clock::now();
  while (!idle_.empty()) {
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    // Each has a lifetime of its own, by its address, so that they are not all replaced at once.
    const uint64_t spread = reinterpret_cast<uintptr_t>(connection.get()) / 64 % 201;
    const auto lifetime = std::chrono::milliseconds(uint64_t{options_.pool.lifetime_s} * (900 + spread));
    if (now - connection->opened_at() < lifetime) return connection;
    stale.push_back(std::move(connection));
    --size_;
  }
  return nullptr;
}

absl::StatusOr<Lease> Pool::Acquire() {
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.pool.wait_ms);
  if (auto status = breaker_.Allow(); !status.ok()) return status;
  for (;;) {
    std::vector<std::unique_ptr<Connection>> stale;
    std::unique_ptr<Connection> connection;
    bool make = false;
    bool suspect = false;
    {
      std::unique_lock lock(mutex_);
      connection = TakeIdle(stale);
      if (connection) {
        suspect = connection->used_at < suspect_before_;
      } else if (size_ < options_.pool.max_connections) {
        ++size_;
        make = true;
      } else if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && idle_.empty()) {
        return absl::ResourceExhaustedError(fmt::format(
            "all {} connections are busy for more than {} ms", options_.pool.max_connections, options_.pool.wait_ms));
      } else {
        // The others may have found out meanwhile that the host fails.
        if (auto status = breaker_.Allow(); !status.ok()) return status;
      }
    }
    if (connection) {
      const auto idle = Clock::now() - connection->used_at;
      const bool check = suspect || idle > std::chrono::milliseconds(options_.pool.check_after_ms);
      if (!check || connection->Alive()) return Lease(shared_from_this(), std::move(connection));
      // The server closed it while it was idle, which says little about the server: on to the next.
      connection.reset();
      const std::lock_guard lock(mutex_);
      --size_;
    } else if (make) {
      auto opened = Connection::Open(host_, options_);
      if (opened.ok()) return Lease(shared_from_this(), *std::move(opened));
      GiveUp(nullptr, opened.status());
      return opened.status();
    }
  }
}

void Pool::GiveBack(std::unique_ptr<Connection> connection) {
  breaker_.Succeeded();
  if (connection->in_transaction()) return GiveUp(std::move(connection), absl::OkStatus());
  connection->used_at = Clock::now();
  std::vector<std::unique_ptr<Connection>> unused;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      --size_;
      unused.push_back(std::move(connection));
    } else {
      idle_.push_back(std::move(connection));
      const auto long_ago = Clock::now() - std::chrono::seconds(options_.pool.idle_s);
      while (size_ > options_.pool.min_connections && idle_.front()->used_at < long_ago) {
        unused.push_back(std::move(idle_.front()));
        idle_.pop_front();
        --size_;
      }
    }
  }
  changed_.notify_one();
}

void Pool::GiveUp(std::unique_ptr<Connection> connection, const absl::Status& why) {
  if (!why.ok()) breaker_.Failed(why);
  {
    const std::lock_guard lock(mutex_);
    --size_;
    // What one connection met the others may have met too.
    if (!why.ok()) suspect_before_ = Clock::now();
  }
  connection.reset();
  // All: if the host is now left alone, nobody need wait for it.
  changed_.notify_all();
}

void Pool::Close() {
  std::deque<std::unique_ptr<Connection>> idle;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  size_ -= idle_.size();
  idle.swap(idle_);
}

}  // namespace kvstore::mysql
