#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/report.h"
#include "bench/sequences/redis_client.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {
namespace {

constexpr char kServedDataset[] = "kv_bench_sequences";
constexpr char kHashes[] = "kv_bench_hashes";

class RespSequences : public SequenceStore {
 public:
  RespSequences(KVStore& store, std::vector<RedisClient> clients, Durability durability)
      : store_(store), clients_(std::move(clients)), durability_(durability) {}
  ~RespSequences() override {
    for (const char* dataset : {kServedDataset, kHashes}) store_.DropDataset(dataset, {}).IgnoreError();
  }

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
    const std::string most = std::to_string(count);
    for (const std::string_view user : users) {
      const std::string key = KeyOf(user, kind);
      const std::array<std::string_view, 6> words = {"XREVRANGE", key, "+", "-", "COUNT", most};
      client.Send(words);
    }
    size_t found = 0;
    for (size_t i = 0; i < users.size(); ++i) found += client.ReceiveReply();
    return found;
  }

  RedisClient* HashClient(int thread) override { return &Client(thread); }
  std::string HashKey(std::string_view user) const override { return RowOf(kHashes, user); }

  std::string promise() const override {
    return durability_ == Durability::kMachine
               ? "an answer survives power loss; all versions are kept, on disk; the Redis protocol"
               : "an answer survives kill -9; all versions are kept, on disk; the Redis protocol";
  }

 private:
  RedisClient& Client(int thread) { return clients_[static_cast<size_t>(thread)]; }

  /// Returns the key of a user's row. Within the row's key a ':' is written as \x3A.
  static std::string RowOf(std::string_view dataset, std::string_view user) {
    std::string key = fmt::format("{}:", dataset);
    for (const char c : user) {
      if (c == ':') {
        key += "\\x3A";
      } else {
        key += c;
      }
    }
    return key;
  }

  /// Returns the key of a column as a stream.
  static std::string KeyOf(std::string_view user, std::string_view kind) {
    return fmt::format("{}:{}", RowOf(kServedDataset, user), kind);
  }

  static void Send(RedisClient& client, const Event& event) {
    const std::string key = KeyOf(event.user, event.kind);
    const std::string id = std::to_string(event.timestamp);
    const std::array<std::string_view, 5> words = {"XADD", key, id, "v", event.value};
    client.Send(words);
  }

  KVStore& store_;
  std::vector<RedisClient> clients_;
  const Durability durability_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRespSequences(KVStore& store, uint16_t port,
                                                                 Durability durability, int threads) {
  std::vector<RedisClient> clients;
  for (int i = 0; i < threads; ++i) {
    auto client = RedisClient::Connect(port);
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  for (const DatasetSpec& spec :
       {DatasetSpec{.name = kServedDataset, .max_versions = 0, .durability = durability},
        DatasetSpec{.name = kHashes, .max_versions = 1, .durability = durability}}) {
    if (auto status = store.CreateDataset(spec); !status.ok()) return status;
  }
  return std::make_unique<RespSequences>(store, std::move(clients), durability);
}

}  // namespace kvstore::bench
