#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cached/servers/server.h"
#include "base/mutex.h"

namespace kvstore::cached {

/// The error of a call, with the name of the server.
inline absl::Status Error(const std::string& server, const absl::Status& status) {
  const auto code = absl::IsCancelled(status) ? absl::StatusCode::kUnavailable : status.code();
  return absl::Status(code, server + ": " + std::string(status.message()));
}

/// The connections to one server, each used by one thread at a time. Thread-safe.
template <typename Connection>
class Connections {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<Connection>>()>;

  Connections(Open open, const ServerOptions& options)
      : open_(std::move(open)), most_(options.connections), wait_(options.timeout) {}

  /// Runs `work(connection)` with an idle connection, or a new one. A connection on which it fails is closed.
  /// If that had been idle and the work finds it closed (CANCELLED), as it is after a restart of the server,
  /// or with bytes that nobody has asked for, the work is done once more with a new one; so it must be
  /// harmless to repeat.
  template <typename Work>
  auto Run(Work work) -> decltype(work(std::declval<Connection&>())) {
    bool idle = false;
    auto connection = Take(&idle);
    if (!connection.ok()) return connection.status();
    auto result = work(**connection);
    if (absl::IsCancelled(StatusOf(result)) && idle) {
      connection->reset();
      CloseIdle();
      auto fresh = open_();
      if (!fresh.ok()) {
        GiveBack(nullptr);
        return fresh.status();
      }
      *connection = *std::move(fresh);
      result = work(**connection);
    }
    GiveBack(result.ok() ? *std::move(connection) : nullptr);
    return result;
  }

  uint32_t count() const {
    const MutexLock lock(mutex_);
    return used_ + static_cast<uint32_t>(idle_.size());
  }

 private:
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  absl::StatusOr<std::unique_ptr<Connection>> Take(bool* idle) {
    {
      const auto end = std::chrono::steady_clock::now() + wait_;
      MutexLock lock(mutex_);
      while (used_ >= most_) {
        if (lock.WaitUntil(freed_, end) && used_ >= most_) {
          return absl::ResourceExhaustedError("all connections to it are in use");
        }
      }
      ++used_;
      if (!idle_.empty()) {
        auto connection = std::move(idle_.back());
        idle_.pop_back();
        *idle = true;
        return connection;
      }
    }
    auto opened = open_();
    if (!opened.ok()) GiveBack(nullptr);
    return opened;
  }

  void GiveBack(std::unique_ptr<Connection> connection) {
    {
      const MutexLock lock(mutex_);
      --used_;
      if (connection != nullptr) idle_.push_back(std::move(connection));
    }
    freed_.notify_one();
  }

  void CloseIdle() {
    std::vector<std::unique_ptr<Connection>> closed;
    const MutexLock lock(mutex_);
    closed.swap(idle_);
  }

  const Open open_;
  const uint32_t most_;
  const std::chrono::milliseconds wait_;
  mutable Mutex mutex_;
  std::condition_variable freed_;
  uint32_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::cached
