#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <utility>

namespace kvstore::server {

/// Threads for calls that may wait. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(size_t threads) : pool_(threads) {}
  /// Waits until all is done that was posted.
  ~WorkerPool() { pool_.join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  template <typename Work>
  void Post(Work&& work) {
    boost::asio::post(pool_, std::forward<Work>(work));
  }

 private:
  boost::asio::thread_pool pool_;
};

}  // namespace kvstore::server
