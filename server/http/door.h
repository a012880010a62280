#pragma once

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/call/call.h"

namespace kvstore::server {

class Connection;

/// The connections that are open, of which there are only so many. When there are too many, the oldest one of
/// a stranger makes room. Thread-safe.
class ConnectionList {
 public:
  /// A connection's place among the others, as long as it lives.
  class Place {
   public:
    explicit Place(ConnectionList& list) : list_(list) {}
    ~Place() { list_.Remove(*this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class ConnectionList;
    ConnectionList& list_;
    std::list<std::weak_ptr<Connection>>::iterator at_;
    bool added_ = false;
    bool known_ = false;
  };

  explicit ConnectionList(size_t most) : most_(most) {}

  /// Adds a connection, of a stranger so far. Returns false if it must be closed, because there are too many
  /// of callers who are known. `evicted` is set to one that must be closed to make room for it.
  bool Add(const std::shared_ptr<Connection>& connection, Place& place, std::shared_ptr<Connection>& evicted);
  /// The caller behind a connection was authenticated.
  void MarkKnown(Place& place);
  std::vector<std::shared_ptr<Connection>> All() const;
  /// Waits until there are none, or for so long; returns whether there are none.
  bool AwaitNone(std::chrono::milliseconds most);
  size_t size() const;

 private:
  void Remove(Place& place);

  const size_t most_;
  mutable Mutex mutex_;
  std::condition_variable none_;
  std::list<std::weak_ptr<Connection>> strangers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  std::list<std::weak_ptr<Connection>> known_ ABSL_GUARDED_BY(mutex_);
};

/// What all connections of the HTTP API share.
struct HttpDoor {
  HttpDoor(Core& calls, boost::asio::ssl::context* encryption);

  /// Returns whether a browser may show answers to pages of this origin.
  bool Allows(std::string_view origin) const;
  /// Returns whether the name by which the client knows this machine is one that a web page cannot have: a
  /// page may come from a name of its own that leads here.
  bool IsHere(std::string_view host) const;

  Core& core;
  boost::asio::ssl::context* const tls;  ///< Null: connections are not encrypted.
  const std::set<std::string, std::less<>> origins;
  const bool checks_host;      ///< Whether whoever runs a browser on this machine may do everything.
  const std::string instance;  ///< Core::instance in hexadecimal digits.
  const std::shared_ptr<const std::string> openapi;
  std::atomic<bool> draining{false};
  ConnectionList connections;
};

}  // namespace kvstore::server
