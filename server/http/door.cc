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
/// Beyond its share, a caller may have a part of this of connections that end with their request.
constexpr size_t kDrainingPart = 8;

size_t MostConnections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<size_t>(limit.rlim_cur / 4, kLeastConnections, kMostConnections);
}

}  // namespace

std::shared_ptr<Connection> ConnectionList::MoveOldest(Connections& from, Connections& to) {
  for (auto oldest = from.begin(); oldest != from.end(); ++oldest) {
    auto connection = oldest->connection.lock();
    if (connection == nullptr) continue;
    oldest->place->among_ = &to;
    to.splice(to.end(), from, oldest);
    return connection;
  }
  return nullptr;
}

bool ConnectionList::Add(const std::shared_ptr<Connection>& connection, Place& place,
                         std::shared_ptr<Connection>& evicted) {
  const MutexLock lock(mutex_);
  if (open_ >= 2 * most_) return false;
  if (open_ - stopped_.size() >= most_) {
    evicted = MoveOldest(strangers_, stopped_);
    if (evicted == nullptr) return false;
  }
  place.at_ = strangers_.insert(strangers_.end(), {connection, &place});
  place.among_ = &strangers_;
  ++open_;
  return true;
}

ConnectionList::TooMany ConnectionList::MarkKnown(Place& place, const CallerShare* caller) {
  const MutexLock lock(mutex_);
  if (place.among_ != &strangers_) return {};
  Known& mine = known_[caller];
  TooMany too_many;
  if (mine.size() >= most_each_) {
    // A request may be one that its client never ends.
    if (mine.draining.size() >= most_each_ / kDrainingPart)
      too_many.stop = MoveOldest(mine.draining, stopped_);
    too_many.drain = MoveOldest(mine.open, mine.draining);
  }
  mine.open.splice(mine.open.end(), strangers_, place.at_);
  place.among_ = &mine.open;
  place.caller_ = caller;
  return too_many;
}

void ConnectionList::Remove(Place& place) {
  const MutexLock lock(mutex_);
  if (place.among_ == nullptr) return;
  place.among_->erase(place.at_);
  if (const auto mine = known_.find(place.caller_); mine != known_.end() && mine->second.size() == 0)
    known_.erase(mine);
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
  add(stopped_);
  add(strangers_);
  for (const auto& [caller, connections] : known_) {
    add(connections.draining);
    add(connections.open);
  }
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
  // A port may follow, also after an address in brackets.
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

bool HttpDoor::IsOwn(std::string_view origin, std::string_view host) const {
  // Where everybody may do everything, a page may come from a name of its own that leads here.
  if (core.access->open_to_all() && !NamesThisMachine(host)) return false;
  const std::string_view scheme = certificates == nullptr ? "http://" : "https://";
  return !host.empty() && origin.starts_with(scheme) && origin.substr(scheme.size()) == host;
}

}  // namespace kvstore::server
