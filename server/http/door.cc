#include "server/http/door.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "base/address.h"
#include "json/json_text.h"
#include "server/http/json_operations.h"
#include "server/http/openapi.h"

namespace kvstore::server {
namespace {

/// How many connections may be open, but at most a quarter of the descriptors that the process may have.
constexpr size_t kMostConnections = 1'000;
constexpr size_t kLeastConnections = 16;

size_t MostConnections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<size_t>(limit.rlim_cur / 4, kLeastConnections, kMostConnections);
}

}  // namespace

std::shared_ptr<Connection> ConnectionList::TakeOldest(Connections& connections) {
  for (auto oldest = connections.begin(); oldest != connections.end(); ++oldest) {
    auto connection = oldest->connection.lock();
    if (connection == nullptr) continue;
    oldest->place->among_ = &leaving_;
    leaving_.splice(leaving_.end(), connections, oldest);
    return connection;
  }
  return nullptr;
}

bool ConnectionList::Add(const std::shared_ptr<Connection>& connection, Place& place,
                         std::shared_ptr<Connection>& evicted) {
  const MutexLock lock(mutex_);
  if (open_ >= 2 * most_) return false;
  if (open_ - leaving_.size() >= most_) {
    evicted = TakeOldest(strangers_);
    if (evicted == nullptr) return false;
  }
  place.at_ = strangers_.insert(strangers_.end(), {connection, &place});
  place.among_ = &strangers_;
  ++open_;
  return true;
}

std::shared_ptr<Connection> ConnectionList::MarkKnown(Place& place, const CallerShare* caller) {
  const MutexLock lock(mutex_);
  if (place.among_ != &strangers_) return nullptr;
  Connections& mine = known_[caller];
  auto evicted = mine.size() < most_each_ ? nullptr : TakeOldest(mine);
  mine.splice(mine.end(), strangers_, place.at_);
  place.among_ = &mine;
  place.caller_ = caller;
  return evicted;
}

void ConnectionList::Remove(Place& place) {
  const MutexLock lock(mutex_);
  if (place.among_ == nullptr) return;
  place.among_->erase(place.at_);
  const bool is_known = place.among_ != &strangers_ && place.among_ != &leaving_;
  if (is_known && place.among_->empty()) known_.erase(place.caller_);
  if (--open_ == 0) none_.notify_all();
}

std::vector<std::shared_ptr<Connection>> ConnectionList::All() const {
  std::vector<std::shared_ptr<Connection>> all;
  const MutexLock lock(mutex_);
  const auto add = [&all](const Connections& connections) {
    for (const Entry& one : connections) {
      if (auto connection = one.connection.lock()) all.push_back(std::move(connection));
    }
  };
  add(leaving_);
  add(strangers_);
  for (const auto& [caller, connections] : known_) add(connections);
  return all;
}

bool ConnectionList::AwaitNone(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  MutexLock lock(mutex_);
  while (open_ > 0) {
    if (lock.WaitUntil(none_, until)) return open_ == 0;
  }
  return true;
}

size_t ConnectionList::size() const {
  const MutexLock lock(mutex_);
  return open_;
}

bool NamesThisMachine(std::string_view host) {
  // Browsers say in each request which host they ask; HTTP/1.0 does without.
  if (host.empty()) return true;
  // A port may follow, also behind an address in brackets.
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos)
    host = host.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost") return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(host), error);
  return !error;
}

HttpDoor::HttpDoor(Core& calls, const Certificates* encryption)
    : core(calls),
      certificates(encryption),
      origins(calls.options.http_origins.begin(), calls.options.http_origins.end()),
      checks_host(calls.access->open_to_all() && IsLocal(calls.options.http_api)),
      instance(InstanceText(calls)),
      openapi(std::make_shared<const std::string>(TextOf(OpenApiDocument()) + "\n")),
      connections(MostConnections(),
                  calls.options.TellsCallersApart() ? (MostConnections() + 1) / 2 : SIZE_MAX) {}

bool HttpDoor::Allows(std::string_view origin) const {
  return origins.contains(origin) || origins.contains("*");
}

}  // namespace kvstore::server
