#include "bench/sequences/sequence_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kvstore::bench {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"click", "view", "save", "search"};
constexpr size_t kValueBytes = 64;
constexpr uint32_t kNewest = 50;
constexpr size_t kFanOut = 100;
constexpr uint32_t kNewestOfMany = 10;
constexpr size_t kLoadBatch = 1000;
constexpr size_t kHashFields = 10;
constexpr size_t kFieldBytes = 100;
constexpr uint64_t kFirstMs = 1'700'000'000'000;

template <typename Random>
std::string_view Kind(Random& random) {
  return kKinds.at(random() % kKinds.size());
}

template <typename Random>
std::string MakeValue(Random& random, size_t bytes = kValueBytes) {
  std::string value;
  while (value.size() < bytes) value += fmt::format("{:016x}", random());
  value.resize(bytes);
  return value;
}

}  // namespace

SequenceLoad::SequenceLoad(uint64_t users, int threads) {
  for (uint64_t i = 0; i < users; ++i) users_.push_back(fmt::format("user:{:08}", i));
  for (int t = 0; t < threads; ++t) random_.emplace_back(t + 1);
}

uint64_t SequenceLoad::Now() { return kFirstMs + now_.fetch_add(1, std::memory_order_relaxed); }

void SequenceLoad::Load(std::span<const std::unique_ptr<SequenceStore>> stores, uint64_t events) {
  Random& random = RandomOf(0);
  std::vector<std::string> values;
  std::vector<Event> batch;
  for (uint64_t loaded = 0; loaded < events; loaded += batch.size()) {
    values.clear();
    batch.clear();
    values.reserve(kLoadBatch);
    while (batch.size() < std::min<uint64_t>(kLoadBatch, events - loaded)) {
      values.push_back(MakeValue(random));
      batch.push_back({User(random), Kind(random), Now(), values.back()});
    }
    for (const auto& store : stores) store->Load(batch);
  }
}

absl::Status SequenceLoad::CheckAlike(std::span<const std::unique_ptr<SequenceStore>> stores) {
  Random& random = RandomOf(0);
  for (int i = 0; i < 100; ++i) {
    const std::string_view user = User(random);
    const std::string_view kind = Kind(random);
    const size_t first = stores.front()->ReadNewest(0, user, kind, kNewest);
    for (const auto& store : stores) {
      const size_t there = store->ReadNewest(0, user, kind, kNewest);
      const size_t of_many = store->ReadNewestOf(0, {&user, 1}, kind, kNewest);
      if (there == first && of_many == first) continue;
      return absl::DataLossError(fmt::format("{} of {}: one has {} events, another {}", kind, user, first,
                                             there == first ? of_many : there));
    }
  }
  return absl::OkStatus();
}

const char* SequenceLoad::Append(SequenceStore& store, int thread) {
  Random& random = RandomOf(thread);
  const std::string value = MakeValue(random);
  store.Append(thread, {User(random), Kind(random), Now(), value});
  return "append";
}

const char* SequenceLoad::ReadNewest(SequenceStore& store, int thread) {
  Random& random = RandomOf(thread);
  const std::string_view user = User(random);
  store.ReadNewest(thread, user, Kind(random), kNewest);
  return "newest_50";
}

const char* SequenceLoad::FanOut(SequenceStore& store, int thread) {
  Random& random = RandomOf(thread);
  std::array<std::string_view, kFanOut> users;
  for (std::string_view& user : users) user = User(random);
  store.ReadNewestOf(thread, users, Kind(random), kNewestOfMany);
  return "fan_out_100";
}

void SequenceLoad::SetHashOf(SequenceStore& store, int thread, std::string_view user) {
  static constexpr std::array<std::string_view, kHashFields> kNames = {"f0", "f1", "f2", "f3", "f4",
                                                                       "f5", "f6", "f7", "f8", "f9"};
  const std::string key = store.HashKey(user);
  const std::string value = MakeValue(RandomOf(thread), kFieldBytes);
  std::array<std::string_view, 2 + 2 * kHashFields> words = {"HSET", key};
  for (size_t i = 0; i < kHashFields; ++i) {
    words.at(2 + 2 * i) = kNames.at(i);
    words.at(3 + 2 * i) = value;
  }
  RedisClient& client = *store.HashClient(thread);
  client.Send(words);
  client.ReceiveReply();
}

void SequenceLoad::SetHashes(SequenceStore& store) {
  for (const std::string& user : users_) SetHashOf(store, 0, user);
}

const char* SequenceLoad::SetHash(SequenceStore& store, int thread) {
  SetHashOf(store, thread, User(RandomOf(thread)));
  return "set_hash_10";
}

const char* SequenceLoad::GetHash(SequenceStore& store, int thread) {
  const std::string key = store.HashKey(User(RandomOf(thread)));
  const std::array<std::string_view, 2> words = {"HGETALL", key};
  RedisClient& client = *store.HashClient(thread);
  client.Send(words);
  client.ReceiveReply();
  return "get_hash_10";
}

}  // namespace kvstore::bench
