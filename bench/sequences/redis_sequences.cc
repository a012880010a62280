#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/child.h"
#include "bench/harness/folder.h"
#include "bench/sequences/redis_client.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {
namespace {

absl::StatusOr<uint16_t> FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(socket, any, size) == 0 && ::getsockname(socket, any, &size) == 0;
  ::close(socket);
  if (!bound) return absl::UnavailableError("no free port");
  return ntohs(address.sin_port);
}

std::string KeyOf(std::string_view user, std::string_view kind) { return fmt::format("{}:{}", user, kind); }

class RedisSequences : public SequenceStore {
 public:
  RedisSequences(Folder folder, Child server, std::vector<RedisClient> clients, Durability durability)
      : folder_(std::move(folder)),
        server_(std::move(server)),
        clients_(std::move(clients)),
        durability_(durability) {}

  void Append(int thread, const Event& event) override {
    Send(Client(thread), event);
    Client(thread).ReceiveReply();
  }

  void Load(std::span<const Event> events) override {
    for (const Event& event : events) Send(Client(0), event);
    for (size_t i = 0; i < events.size(); ++i) Client(0).ReceiveReply();
  }

  size_t ReadNewest(int thread, std::string_view user, std::string_view kind, uint32_t count) override {
    return ReadNewestOf(thread, {&user, 1}, kind, count);
  }

  size_t ReadNewestOf(int thread, std::span<const std::string_view> users, std::string_view kind,
                      uint32_t count) override {
    RedisClient& client = Client(thread);
    const std::string last = std::to_string(count - 1);
    for (const std::string_view user : users) {
      const std::string key = KeyOf(user, kind);
      const std::array<std::string_view, 4> words = {"ZREVRANGE", key, "0", last};
      client.Send(words);
    }
    size_t found = 0;
    for (size_t i = 0; i < users.size(); ++i) found += client.ReceiveReply();
    return found;
  }

  RedisClient* HashClient(int thread) override { return &Client(thread); }

  std::string promise() const override {
    return durability_ == Durability::kMachine
               ? "appendfsync always: an answer survives power loss; all is in memory"
               : "appendfsync no: an answer survives kill -9; all is in memory";
  }

 private:
  RedisClient& Client(int thread) { return clients_[static_cast<size_t>(thread)]; }

  static void Send(RedisClient& client, const Event& event) {
    const std::string key = KeyOf(event.user, event.kind);
    const std::string score = std::to_string(event.timestamp);
    // Members of a set are unique: the same value at another time is another event.
    const std::string member = fmt::format("{}:{}", score, event.value);
    const std::array<std::string_view, 4> words = {"ZADD", key, score, member};
    client.Send(words);
  }

  const Folder folder_;  // of server_
  const Child server_;
  std::vector<RedisClient> clients_;
  const Durability durability_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRedisSequences(Durability durability, int threads) {
  auto folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  const auto port = FreePort();
  if (!port.ok()) return port.status();
  auto server = Child::StartProgram({"redis-server", "--bind", "127.0.0.1", "--port", std::to_string(*port),
                                     "--dir", folder->path().string(), "--save", "", "--logfile",
                                     (folder->path() / "log").string(), "--appendonly", "yes",
                                     "--appendfsync", durability == Durability::kMachine ? "always" : "no"});
  if (!server.ok()) return server.status();
  std::vector<RedisClient> clients;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (clients.size() < static_cast<size_t>(threads)) {
    auto client = RedisClient::Connect(*port);
    if (client.ok()) {
      clients.push_back(*std::move(client));
    } else if (!server->runs()) {
      return absl::UnavailableError("redis-server: ended at once, or is not installed");
    } else if (std::chrono::steady_clock::now() > deadline) {
      return client.status();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return std::make_unique<RedisSequences>(*std::move(folder), *std::move(server), std::move(clients),
                                          durability);
}

}  // namespace kvstore::bench
