#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace kvstore::testing::fleet_size {

/// Many clients that watch one node of ZooKeeper as OpenZooKeeperSource does: each has a session of its own,
/// asks for the state of the node with a watch, and reads the data if it has changed. They speak ZooKeeper's
/// protocol on raw sockets, all in one thread. The data is received and not looked at.
///
/// A client that has lost its connection tries the next server, after a random time of up to a second at
/// first, which doubles up to 16 s: as ZooKeeper's client in its mode kTriesInCalls, but for that one's
/// attempts within a call, which a single machine could not make for all clients.
class WatchingClients {
 public:
  using Clock = std::chrono::steady_clock;

  struct Counts {
    size_t connected = 0;     ///< Clients with a session.
    size_t reconnects = 0;    ///< How often clients have lost a connection.
    size_t new_sessions = 0;  ///< How often a session had expired.
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
  };

  /// Returns at once; the clients connect one after another, as fast as they can.
  WatchingClients(std::vector<uint16_t> ports, std::string node, size_t clients);
  ~WatchingClients();
  WatchingClients(const WatchingClients&) = delete;
  WatchingClients& operator=(const WatchingClients&) = delete;

  Counts counts() const;
  /// Returns how many clients have the data of that transaction, or of a later one.
  size_t HowManyHave(int64_t transaction) const;
  /// Returns, for all clients, when each received the data that it has, sorted.
  std::vector<Clock::time_point> Times() const;

 private:
  enum class State : uint8_t { kAway, kConnecting, kGreeting, kConnected };
  struct Client {
    int fd = -1;
    State state = State::kAway;
    size_t server = 0;
    unsigned failures = 0;     // in a row
    Clock::time_point act_at;  // kAway: when it tries again
    Clock::time_point sent_at;
    Clock::time_point heard_at;
    int64_t session = 0;
    std::array<char, 16> password{};
    std::string head;    // what was received of a frame: all of a small one, the start of a large one
    size_t frame = 0;    // the length of the frame that is being received; 0: not known yet
    size_t skipped = 0;  // how much of a large frame was received and dropped
    int64_t wanted = 0;  // the transaction whose data it asked for
    std::atomic<int64_t> has{0};  // the transaction whose data it has
    std::atomic<Clock::rep> has_since{0};
  };

  void Run();
  void Connect(Client& client);
  void Lose(Client& client);
  void OnWritable(Client& client);
  void OnReadable(Client& client);
  /// Takes what was received into frames, and handles those that are complete.
  void Take(Client& client, const char* data, size_t size);
  void OnFrame(Client& client);
  void OnGreeting(Client& client);
  void Send(Client& client, const std::string& body);
  void AskForState(Client& client);
  void AskForData(Client& client);
  void Tick();

  const std::vector<uint16_t> ports_;
  const std::string node_;
  std::vector<Client> clients_;
  std::mt19937_64 random_{1};
  int epoll_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> connected_{0};
  std::atomic<size_t> reconnects_{0};
  std::atomic<size_t> new_sessions_{0};
  std::atomic<uint64_t> bytes_in_{0};
  std::atomic<uint64_t> bytes_out_{0};
  std::thread thread_;
};

}  // namespace kvstore::testing::fleet_size
