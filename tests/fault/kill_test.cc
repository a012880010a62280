#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "kvstore_api/open.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// kill -9 at random moments: every acknowledged write is there afterwards, in full, and no ID or timestamp
/// is assigned twice. The writer records what was acknowledged in memory that it shares with the test, and
/// that survives it.
namespace kvstore {
namespace {

constexpr int kThreads = 3;
constexpr int kColumns = 5;
constexpr uint64_t kMaxWrites = 1 << 20;

/// The acknowledged writes of each thread, over all runs of the writer.
struct Acknowledged {
  std::array<std::atomic<uint64_t>, kThreads> rows{};            // writes 0..n-1 of the thread
  std::array<std::atomic<uint64_t>, kThreads> last_timestamp{};  // assigned to the thread's hot row
  std::array<std::atomic<uint64_t>, kThreads> last_id{};  // the last object that the thread made on its shard
  std::atomic<int> problem{0};                            // line of the check that failed in the writer
};

#define REQUIRE(condition)             \
  do {                                 \
    if (!(condition)) {                \
      acknowledged.problem = __LINE__; \
      return;                          \
    }                                  \
  } while (false)

std::string RowOf(int thread, uint64_t i) { return "t" + std::to_string(thread) + "/" + std::to_string(i); }

/// Writes until the process is killed. Write i of a thread puts a row of its own and the thread's hot row,
/// and creates an object.
void Write(KVStore& store, int thread, Acknowledged& acknowledged) {
  const std::string hot = "hot" + std::to_string(thread);
  for (uint64_t i = acknowledged.rows[thread]; i < kMaxWrites; ++i) {
    const std::string value = std::to_string(i);
    std::vector<std::string> names;
    std::vector<CellWrite> cells;
    for (int column = 0; column < kColumns; ++column) names.push_back("c" + std::to_string(column));
    for (const std::string& name : names) cells.push_back({name, value, i});
    REQUIRE(store.PutRow("rows", RowOf(thread, i), cells, {}).ok());
    const CellWrite cell{"x", value, std::nullopt};
    const auto put = store.PutRow("rows", hot, {&cell, 1}, {});
    REQUIRE(put.ok());
    REQUIRE(*put->timestamp > acknowledged.last_timestamp[thread]);
    acknowledged.last_timestamp[thread] = *put->timestamp;
    const auto id = store.CreateObject("pins", "{}", {.shard = static_cast<uint32_t>(thread)});
    REQUIRE(id.ok());
    REQUIRE(*id > acknowledged.last_id[thread]);
    acknowledged.last_id[thread] = *id;
    acknowledged.rows[thread] = i + 1;
  }
}

/// Checks the writes first..n-1 of each thread, and that the one that was interrupted, if any, is there in
/// full or not at all.
void Check(KVStore& store, const std::array<uint64_t, kThreads>& first, Acknowledged& acknowledged) {
  for (int thread = 0; thread < kThreads; ++thread) {
    const uint64_t end = acknowledged.rows[thread];
    for (uint64_t i = first[thread]; i <= end; ++i) {
      const auto row = store.GetRow("rows", RowOf(thread, i), {});
      REQUIRE(row.ok());
      if (i == end && row->items.empty()) continue;
      REQUIRE(row->items.size() == kColumns);
      for (const Item& item : row->items) REQUIRE(item.cells[0].value == std::to_string(i));
    }
    if (end == 0) continue;
    const auto hot = store.GetRow("rows", "hot" + std::to_string(thread), {});
    REQUIRE(hot.ok() && hot->items.size() == 1);
    REQUIRE(hot->items[0].cells[0].timestamp >= acknowledged.last_timestamp[thread]);
    REQUIRE(store.GetObject("pins", acknowledged.last_id[thread], {}).ok());
  }
}

/// One run of the writer: checks what the runs since `first` wrote, then writes until the process is killed.
int RunWriter(const std::filesystem::path& dir, const std::array<uint64_t, kThreads>& first, bool write,
              Acknowledged& acknowledged) {
  const auto fail = [&](int line) {
    acknowledged.problem = line;
    return 1;
  };
  auto opened = Open({.data = dir});
  if (!opened.ok()) return fail(__LINE__);
  KVStore& store = **opened;
  if (store.ListDatasets()->empty()) {
    if (!store.CreateDataset({.name = "rows"}).ok()) return fail(__LINE__);
  }
  if (store.ListDatasets()->size() == 1) {
    if (!store.CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 1}).ok())
      return fail(__LINE__);
  }
  Check(store, first, acknowledged);
  if (acknowledged.problem != 0 || !write) return acknowledged.problem != 0 ? 1 : 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] { Write(store, thread, acknowledged); });
  }
  for (std::thread& thread : threads) thread.join();
  return fail(__LINE__);
}

TEST(KillTest, NoAcknowledgedWriteIsLost) {
  const testing::TempDir dir;
  testing::Random random(testing::Seed("kill"));
  const uint64_t rounds = testing::Rounds("KV_TEST_KILLS", 100);
  void* memory =
      ::mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& acknowledged = *new (memory) Acknowledged;
  std::array<uint64_t, kThreads> first{};
  uint64_t wrote = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::array<uint64_t, kThreads> before{};
    for (int thread = 0; thread < kThreads; ++thread) before[thread] = acknowledged.rows[thread];
    // Sometimes kill at once, while the store is being opened or created; else after some more writes.
    const bool at_once = random.OneIn(5);
    const uint64_t wait_for = random.Below(at_once ? 2 : 400);
    const pid_t writer = testing::Fork([&] { return RunWriter(dir / "s", first, true, acknowledged); });
    // This waits for nothing: it makes the moment of the kill random.
    if (at_once) ::usleep(static_cast<useconds_t>(random.Below(20'000)));
    while (!at_once && acknowledged.problem == 0 && acknowledged.rows[0] - before[0] < wait_for)
      ::sched_yield();
    testing::Kill(writer);
    ASSERT_EQ(acknowledged.problem, 0) << "line " << acknowledged.problem << ", round " << round;
    // The next run checks the writes of this one, and what was in flight; at the end, all runs are checked
    // together.
    first = before;
    wrote = acknowledged.rows[0];
  }
  EXPECT_EQ(testing::Wait(testing::Fork([&] { return RunWriter(dir / "s", {}, false, acknowledged); })).code,
            0)
      << "line " << acknowledged.problem;
  EXPECT_GT(wrote, rounds);
  ::munmap(memory, sizeof(Acknowledged));
}

}  // namespace
}  // namespace kvstore
