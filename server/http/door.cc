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

bool ConnectionList::Add(const std::shared_ptr<Connection>& connection, Place& place,
                         std::shared_ptr<Connection>& evicted) {
  const MutexLock lock(mutex_);
  const size_t open = strangers_.size() + known_.size();
  // Those that were evicted need a moment to be gone.
  if (open >= 2 * most_) return false;
  if (open >= most_) {
    const auto oldest =
        std::find_if(strangers_.begin(), strangers_.end(), [&](const auto& one) { return !one.expired(); });
    if (oldest == strangers_.end()) return false;
    evicted = oldest->lock();
    // The next one to make room is another.
    strangers_.splice(strangers_.end(), strangers_, oldest);
  }
  place.at_ = strangers_.insert(strangers_.end(), connection);
  place.added_ = true;
  return true;
}

void ConnectionList::MarkKnown(Place& place) {
  const MutexLock lock(mutex_);
  if (!place.added_ || std::exchange(place.known_, true)) return;
  known_.splice(known_.end(), strangers_, place.at_);
}

void ConnectionList::Remove(Place& place) {
  const MutexLock lock(mutex_);
  if (!place.added_) return;
  (place.known_ ? known_ : strangers_).erase(place.at_);
  if (strangers_.empty() && known_.empty()) none_.notify_all();
}

std::vector<std::shared_ptr<Connection>> ConnectionList::All() const {
  std::vector<std::shared_ptr<Connection>> all;
  const MutexLock lock(mutex_);
  for (const auto* list : {&strangers_, &known_}) {
    for (const auto& one : *list) {
      if (auto connection = one.lock()) all.push_back(std::move(connection));
    }
  }
  return all;
}

bool ConnectionList::AwaitNone(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  MutexLock lock(mutex_);
  while (!strangers_.empty() || !known_.empty()) {
    if (lock.WaitUntil(none_, until)) return strangers_.empty() && known_.empty();
  }
  return true;
}

size_t ConnectionList::size() const {
  const MutexLock lock(mutex_);
  return strangers_.size() + known_.size();
}

HttpDoor::HttpDoor(Core& calls, boost::asio::ssl::context* encryption)
    : core(calls),
      tls(encryption),
      origins(calls.options.http_origins.begin(), calls.options.http_origins.end()),
      checks_host(calls.access->open_to_all() && IsLocal(calls.options.http_api)),
      instance(InstanceText(calls)),
      openapi(std::make_shared<const std::string>(TextOf(OpenApiDocument()) + "\n")),
      connections(MostConnections()) {}

bool HttpDoor::Allows(std::string_view origin) const {
  return origins.contains(origin) || origins.contains("*");
}

bool HttpDoor::IsHere(std::string_view host) const {
  // Browsers say in each request which host they ask; HTTP/1.0 does without.
  if (!checks_host || host.empty()) return true;
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

}  // namespace kvstore::server
