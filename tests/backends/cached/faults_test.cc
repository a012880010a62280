#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/outcome.h"
#include "testing/history.h"
#include "tests/backends/cached/cached_under_test.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"

namespace kvstore::testing {
namespace {

const bool kSharedCaches = ShareCacheFleet();
const bool kShared = ShareFleet();

constexpr uint32_t kKeys = 12;
constexpr int kProcesses = 3;
constexpr int kThreads = 4;
/// How many answers of caches there must be after the first fault; with fewer the run says nothing of caches.
constexpr uint64_t kEnoughHits = 2'000;
constexpr char kNode[] = "/faults/caches/mysql";

DatasetSpec ObjectsSpec() {
  return {.name = "objects", .shape = Shape::kObjects, .backend = "mysql", .type = 1, .incarnation = 1};
}
DatasetSpec MappingsSpec() {
  return {.name = "lists", .shape = Shape::kMappings, .backend = "mysql", .incarnation = 2};
}

/// The keys of a history: objects, then lists of one entry, whose sequence is the register.
struct Work {
  std::vector<uint64_t> objects;
  CacheOptions options;
};

/// One operation on a random key.
void Operate(const Work& work, ObjectStore& objects, MappingStore& lists, History& history, Random& random) {
  const auto key = static_cast<uint32_t>(random.Below(2 * kKeys));
  const bool object = key < kKeys;
  const uint64_t id = work.objects[key % kKeys];
  if (random.Below(4) != 0) {
    const size_t operation = history.Begin(key, History::Kind::kRead);
    if (object) {
      const auto read = objects.Get(id, {});
      if (read.ok()) {
        history.End(operation, std::stoull(read->data.substr(5)));
      } else {
        history.Fail(operation);
      }
    } else {
      const auto list = lists.List(id, {.descending = true, .limit = 1, .offset = 0, .after = {}});
      if (!list.ok()) {
        history.Fail(operation);
      } else {
        history.End(operation, list->entries.empty() ? History::kNone : list->entries[0].sequence);
      }
    }
    return;
  }
  const uint64_t value = history.NewValue();
  const size_t operation = history.Begin(key, History::Kind::kWrite, value);
  absl::Status status;
  if (object) {
    status =
        objects.Update(id, [&](std::string_view) { return fmt::format("{{\"v\":{}}}", value); }, {}).status();
  } else {
    status = lists.Add(id, /*to=*/1, /*sequence=*/value);
  }
  if (status.ok()) {
    history.End(operation);
  } else if (!IsInDoubt(status)) {
    history.Fail(operation);
  }
}

/// A number that child processes share with this one.
class SharedCount {
 public:
  SharedCount()
      : count_(static_cast<std::atomic<uint64_t>*>(::mmap(nullptr, sizeof(std::atomic<uint64_t>),
                                                          PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                                          -1, 0))) {}
  ~SharedCount() { ::munmap(count_, sizeof(std::atomic<uint64_t>)); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  std::atomic<uint64_t>& operator*() const { return *count_; }

 private:
  std::atomic<uint64_t>* const count_;
};

/// Runs one process, which operates until the history is full or it is killed. Returns its exit code.
int RunProcess(const Work& work, History& history, std::atomic<uint64_t>& hits, uint64_t seed) {
  auto of = SharedFleet().OpenAsMapped();
  if (!of.ok()) return 1;
  const auto backend = SharedCacheFleet().Open(*std::move(of), kNode, work.options);
  auto objects = backend->OpenObjects(ObjectsSpec());
  auto lists = backend->OpenMappings(MappingsSpec());
  if (!objects.ok() || !lists.ok()) return 2;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Random random(seed * 100 + static_cast<uint64_t>(i));
      uint64_t told = 0;
      while (!history.full()) {
        Operate(work, **objects, **lists, history, random);
        if (i != 0) continue;
        const uint64_t now =
            backend->caches().objects().stats().hits + backend->caches().mappings().stats().hits;
        hits += now - std::exchange(told, now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

/// Processes read and write through caches, while these, their ways, ZooKeeper and the processes themselves
/// fail: no answer is older than what was acknowledged.
TEST(CacheFaultsTest, NothingIsEverStale) {
  const char* given = std::getenv("KV_SEED");
  const uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  SCOPED_TRACE(fmt::format("KV_SEED={}", seed));
  const char* minutes = std::getenv("KV_CACHE_MINUTES");
  const auto duration =
      minutes != nullptr ? std::chrono::seconds(60 * std::stoul(minutes)) : std::chrono::seconds(40);
  Random random(seed);
  SharedFleet().Clear();
  CacheFleet& caches = SharedCacheFleet();
  History history(2 * kKeys, 1'500'000);
  Work work;
  work.options = caches.Options();
  work.options.timeout_ms = 300;
  work.options.lease_ms = 500;
  // Longer than processes are stopped below.
  work.options.quarantine_s = 3;
  std::vector<pid_t> processes;
  {
    // In a child, as a process that has threads cannot be forked.
    const std::string file = (SharedFleet().Map("objects")).string();
    const pid_t maker = Fork([&] {
      const auto backend = SharedFleet().OpenAsMapped();
      if (!backend.ok() || !(*backend)->CreateDataset(ObjectsSpec()).ok() ||
          !(*backend)->CreateDataset(MappingsSpec()).ok()) {
        return 1;
      }
      const auto objects = (*backend)->OpenObjects(ObjectsSpec());
      const auto cached = SharedCacheFleet().Open(*SharedFleet().OpenAsMapped(), kNode, work.options);
      if (!cached->caches().UseServers({}).ok()) return 4;
      std::ofstream out(file);
      for (uint32_t i = 0; i < kKeys; ++i) {
        const auto id = (*objects)->Create("{\"v\":0}", {});
        if (!id.ok()) return 2;
        out << *id << "\n";
      }
      return out.flush() ? 0 : 3;
    });
    ASSERT_EQ(Wait(maker).code, 0);
    std::ifstream in(file);
    for (uint64_t id = 0; in >> id;) work.objects.push_back(id);
    ASSERT_EQ(work.objects.size(), kKeys);
  }
  uint64_t started = 0;
  const SharedCount hits;
  const auto start = [&] {
    return Fork([&] { return RunProcess(work, history, *hits, seed + started * 7919); });
  };
  for (int i = 0; i < kProcesses; ++i) {
    ++started;
    processes.push_back(start());
  }
  const auto end = std::chrono::steady_clock::now() + duration;
  int faults = 0;
  const auto pause = [&](uint64_t least, uint64_t most) {
    std::this_thread::sleep_for(std::chrono::milliseconds(least + random.Below(most - least)));
  };
  ASSERT_TRUE(Eventually([&] { return *hits > 1'000; })) << "the caches are not used";
  const uint64_t enough = *hits + kEnoughHits;
  // Where the machine is busy, it takes longer to see enough of the caches; a full history ends the run.
  while (!history.full() && (std::chrono::steady_clock::now() < end || *hits < enough)) {
    CacheServer& server = random.Below(2) == 0 ? caches.memcached : caches.redis;
    switch (random.Below(5)) {
      case 0:
        server.Stop();
        pause(0, 1500);
        server.Start();
        break;
      case 1:
        server.Pause();
        pause(0, 1500);
        server.Continue();
        break;
      case 2: {
        pid_t& process = processes[random.Below(processes.size())];
        Kill(process);
        ++started;
        process = start();
        break;
      }
      case 3: {
        const pid_t process = processes[random.Below(processes.size())];
        ::kill(process, SIGSTOP);
        pause(0, 1200);
        ::kill(process, SIGCONT);
        break;
      }
      case 4:
        caches.zookeeper.Stop();
        pause(0, 1500);
        caches.zookeeper.Start();
        break;
    }
    ++faults;
    pause(500, 6000);
  }
  for (const pid_t process : processes) Kill(process);
  fmt::print("{} faults, {} operations, {} of them answered by caches\n", faults, history.size(),
             (*hits).load());
  EXPECT_GE(*hits, enough) << "the caches are not used while there are faults";
  const auto problem = history.Check();
  EXPECT_EQ(problem, std::nullopt) << problem.value_or("");
}

}  // namespace
}  // namespace kvstore::testing
