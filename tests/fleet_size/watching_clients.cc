#include "tests/fleet_size/watching_clients.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "tests/support/loopback.h"

namespace kvstore::testing::fleet_size {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSessionTimeout{10'000};
constexpr milliseconds kFirstRetry{1'000};
constexpr milliseconds kLastRetry{16'000};
/// How many clients may be connecting at a time, which the servers' backlogs hold.
constexpr size_t kMostConnecting = 1'000;
/// Frames beyond this are dropped while they arrive; those with a state of a node are below it.
constexpr size_t kKept = 128;

// Constants of ZooKeeper's protocol.
constexpr int32_t kExists = 3;
constexpr int32_t kGetData = 4;
constexpr int32_t kPing = 11;
constexpr int32_t kEventXid = -1;
constexpr int32_t kPingXid = -2;
constexpr int32_t kStateXid = 1;
constexpr int32_t kDataXid = 2;

void Put(std::string& to, int64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) to.push_back(static_cast<char>(value >> (8 * i)));
}

void PutText(std::string& to, const std::string& text) {
  Put(to, static_cast<int64_t>(text.size()), 4);
  to += text;
}

int64_t Get(const std::string& from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<uint8_t>(from[at + static_cast<size_t>(i)]);
  return bytes == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

}  // namespace

WatchingClients::WatchingClients(std::vector<uint16_t> ports, std::string node, size_t clients)
    : ports_(std::move(ports)),
      node_(std::move(node)),
      clients_(clients),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw std::runtime_error("epoll_create1 failed");
  for (size_t i = 0; i < clients_.size(); ++i) clients_[i].server = i;
  thread_ = std::thread([this] { Run(); });
}

WatchingClients::~WatchingClients() {
  stopping_ = true;
  thread_.join();
  for (const Client& client : clients_) {
    if (client.fd >= 0) ::close(client.fd);
  }
  ::close(epoll_);
}

WatchingClients::Counts WatchingClients::counts() const {
  return {connected_, reconnects_, new_sessions_, bytes_in_, bytes_out_};
}

size_t WatchingClients::HowManyHave(int64_t transaction) const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.has.load(std::memory_order_acquire) >= transaction;
  }));
}

std::vector<WatchingClients::Clock::time_point> WatchingClients::Times() const {
  std::vector<Clock::time_point> times;
  times.reserve(clients_.size());
  for (const Client& client : clients_) times.emplace_back(Clock::duration(client.has_since.load()));
  std::sort(times.begin(), times.end());
  return times;
}

void WatchingClients::Run() {
  std::vector<epoll_event> events(1024);
  auto tick_at = Clock::now();
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 20);
    for (int i = 0; i < count; ++i) {
      Client& client = clients_[events[static_cast<size_t>(i)].data.u64];
      if (client.state == State::kConnecting) {
        OnWritable(client);
      } else if (client.fd >= 0) {
        OnReadable(client);
      }
    }
    if (Clock::now() < tick_at) continue;
    Tick();
    tick_at = Clock::now() + milliseconds(20);
  }
}

void WatchingClients::Tick() {
  const auto now = Clock::now();
  auto connecting =
      static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [](const Client& one) {
        return one.state == State::kConnecting || one.state == State::kGreeting;
      }));
  for (Client& client : clients_) {
    switch (client.state) {
      case State::kAway:
        if (now >= client.act_at && connecting < kMostConnecting) {
          ++connecting;
          Connect(client);
        }
        break;
      case State::kConnected:
        if (now - client.sent_at > kSessionTimeout / 3) {
          std::string ping;
          Put(ping, kPingXid, 4);
          Put(ping, kPing, 4);
          Send(client, ping);
        }
        [[fallthrough]];
      default:
        if (client.state != State::kAway && now - client.heard_at > kSessionTimeout * 2 / 3) Lose(client);
    }
  }
}

void WatchingClients::Connect(Client& client) {
  client.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client.fd < 0) throw std::runtime_error("no more sockets: raise the limit of open files");
  const int on = 1;
  ::setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const sockaddr_in address = Loopback(ports_[client.server++ % ports_.size()]);
  client.heard_at = Clock::now();
  client.head.clear();
  client.frame = client.skipped = 0;
  client.state = State::kConnecting;
  epoll_event event{.events = EPOLLOUT | EPOLLIN,
                    .data = {.u64 = static_cast<uint64_t>(&client - clients_.data())}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, client.fd, &event);
  if (::connect(client.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    Lose(client);
  }
}

void WatchingClients::Lose(Client& client) {
  if (client.state == State::kConnected) {
    --connected_;
    ++reconnects_;
  }
  ::close(client.fd);
  client.fd = -1;
  client.state = State::kAway;
  const auto end = std::min(kLastRetry, kFirstRetry * (1 << std::min(client.failures++, 10U)));
  client.act_at = Clock::now() + milliseconds(random_() % static_cast<uint64_t>(end.count() + 1));
}

void WatchingClients::OnWritable(Client& client) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(client.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return Lose(client);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(&client - clients_.data())}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, client.fd, &event);
  client.state = State::kGreeting;
  std::string greeting;
  Put(greeting, 0, 4);  // the version of the protocol
  Put(greeting, 0, 8);  // the last transaction that this client has seen
  Put(greeting, kSessionTimeout.count(), 4);
  Put(greeting, client.session, 8);
  PutText(greeting, std::string(client.password.data(), client.password.size()));
  Send(client, greeting);
}

void WatchingClients::OnReadable(Client& client) {
  static thread_local std::vector<char> buffer(size_t{1} << 20);
  const ssize_t size = ::read(client.fd, buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return Lose(client);
  client.heard_at = Clock::now();
  bytes_in_ += static_cast<uint64_t>(size);
  Take(client, buffer.data(), static_cast<size_t>(size));
}

void WatchingClients::Take(Client& client, const char* data, size_t size) {
  while (size > 0 && client.fd >= 0) {
    const size_t want =
        client.frame == 0 ? 4 - client.head.size() : client.frame - client.head.size() - client.skipped;
    const size_t part = std::min(size, want);
    const size_t kept =
        client.frame == 0 ? part : std::min(part, kKept - std::min(kKept, client.head.size()));
    client.head.append(data, kept);
    client.skipped += part - kept;
    data += part;
    size -= part;
    if (client.frame == 0) {
      if (client.head.size() < 4) return;
      client.frame = static_cast<size_t>(Get(client.head, 0, 4));
      client.head.clear();
    } else if (client.head.size() + client.skipped == client.frame) {
      OnFrame(client);
      client.head.clear();
      client.frame = client.skipped = 0;
    }
  }
}

void WatchingClients::OnGreeting(Client& client) {
  // The version, the timeout, the session, its password.
  if (client.head.size() < 36) return Lose(client);
  const int64_t session = Get(client.head, 8, 8);
  if (session == 0) {
    // It has expired. The next attempt begins another one.
    ++new_sessions_;
    client.session = 0;
    client.password.fill(0);
    return Lose(client);
  }
  client.session = session;
  std::copy_n(client.head.begin() + 20, client.password.size(), client.password.begin());
  client.state = State::kConnected;
  client.failures = 0;
  ++connected_;
  AskForState(client);
}

void WatchingClients::OnFrame(Client& client) {
  if (client.state == State::kGreeting) return OnGreeting(client);
  if (client.head.size() < 16) return Lose(client);
  const auto xid = static_cast<int32_t>(Get(client.head, 0, 4));
  const int64_t error = Get(client.head, 12, 4);
  if (xid == kEventXid) {
    AskForState(client);
  } else if (xid == kStateXid && error == 0 && client.head.size() >= 32) {
    // Its state begins with the transaction that made it, then that of the last change.
    client.wanted = Get(client.head, 24, 8);
    if (client.wanted != client.has) AskForData(client);
  } else if (xid == kDataXid && error == 0) {
    client.has_since = Clock::now().time_since_epoch().count();
    client.has.store(client.wanted, std::memory_order_release);
  }
}

void WatchingClients::Send(Client& client, const std::string& body) {
  std::string frame;
  PutText(frame, body);
  client.sent_at = Clock::now();
  bytes_out_ += frame.size();
  // Requests are small: the socket takes them at once, or the connection is lost.
  if (::send(client.fd, frame.data(), frame.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(frame.size())) {
    Lose(client);
  }
}

void WatchingClients::AskForState(Client& client) {
  std::string body;
  Put(body, kStateXid, 4);
  Put(body, kExists, 4);
  PutText(body, node_);
  Put(body, 1, 1);  // with a watch
  Send(client, body);
}

void WatchingClients::AskForData(Client& client) {
  std::string body;
  Put(body, kDataXid, 4);
  Put(body, kGetData, 4);
  PutText(body, node_);
  Put(body, 0, 1);
  Send(client, body);
}

}  // namespace kvstore::testing::fleet_size
