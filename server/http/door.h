#pragma once

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/call/call.h"
#include "server/tls/certificates.h"

namespace kvstore::server {

class Connection;

/// The connections that are open, of which there are only so many. When there are too many, the oldest one of
/// a stranger makes room; a caller that has more than it may have makes room for itself. Thread-safe.
class ConnectionList {
  struct Entry;
  using Connections = std::list<Entry>;

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
    Connections* among_ = nullptr;  // those of its caller; null: it was not added
    Connections::iterator at_;
    const CallerShare* caller_ = nullptr;
  };

  /// most       Connections of all together.
  /// most_each  Of one caller.
  ConnectionList(size_t most, size_t most_each) : most_(most), most_each_(most_each) {}

  /// Adds a connection, of a stranger so far. Returns false if it must be closed, because there are too many
  /// of callers who are known. `evicted` is set to one that must be closed to make room for it.
  bool Add(const std::shared_ptr<Connection>& connection, Place& place, std::shared_ptr<Connection>& evicted);
  /// Connections that must make room for another one of their caller.
  struct TooMany {
    std::shared_ptr<Connection> drain;  ///< As soon as no request is in flight; may be null.
    std::shared_ptr<Connection> stop;   ///< At once; may be null.
  };
  /// The caller behind a connection was authenticated; a connection that has one keeps it.
  TooMany MarkKnown(Place& place, const CallerShare* caller);
  std::vector<std::shared_ptr<Connection>> All() const;
  /// Waits until there are none, or for so long; returns whether there are none.
  bool AwaitNone(std::chrono::milliseconds most);
  size_t size() const;

 private:
  void Remove(Place& place);
  /// Returns the oldest of these connections, which is one of `to` from here on; null if there is none.
  static std::shared_ptr<Connection> MoveOldest(Connections& from, Connections& to);

  struct Entry {
    std::weak_ptr<Connection> connection;
    Place* place;
  };
  /// Those of a caller.
  struct Known {
    Connections open;      // the oldest first
    Connections draining;  // likewise: they end with their request
    size_t size() const { return open.size() + draining.size(); }
  };

  const size_t most_;
  const size_t most_each_;
  mutable Mutex mutex_;
  std::condition_variable none_;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;        // with those that were stopped
  Connections stopped_ ABSL_GUARDED_BY(mutex_);    // that need a moment to be gone
  Connections strangers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  std::map<const CallerShare*, Known> known_ ABSL_GUARDED_BY(mutex_);
};

/// Returns whether a host, as a request names it, is this machine by a name that a web page cannot have: a
/// page may come from a name of its own that leads here. True also if the request names none.
bool NamesThisMachine(std::string_view host);

/// The state that all connections of the HTTP API share.
struct HttpDoor {
  /// encryption  Null: connections are not encrypted.
  HttpDoor(Core& calls, const Certificates* encryption);

  /// Returns whether a browser may show answers to pages of this origin.
  bool Allows(std::string_view origin) const;
  /// Returns whether a page of this origin is the console of this server, which the request names as `host`.
  bool IsOwn(std::string_view origin, std::string_view host) const;
  /// Returns whether requests for this host are answered.
  bool Serves(std::string_view host) const { return !checks_host || NamesThisMachine(host); }

  Core& core;
  /// Returns the TLS context that encrypts a new connection; null if connections are not encrypted.
  std::shared_ptr<boost::asio::ssl::context> Tls() const {
    return certificates == nullptr ? nullptr : certificates->context();
  }

  const Certificates* const certificates;
  const std::set<std::string, std::less<>> origins;
  const bool checks_host;      ///< Whether whoever runs a browser on this machine may do everything.
  const std::string instance;  ///< Core::instance in hexadecimal digits.
  const std::shared_ptr<const std::string> openapi;
  std::atomic<bool> draining{false};
  ConnectionList connections;
};

}  // namespace kvstore::server
