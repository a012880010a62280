#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kvstore_api/open.h"
#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/metadata.h"
#include "reports/rollup.h"
#include "reports/writer.h"
#include "tests/reports/report_choices.h"
#include "tests/reports/report_model.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A process that loads a report, compacts it and makes its roll-ups is killed at a random moment. The next
/// one repeats its batches under their IDs, and every answer is the model's, with roll-ups and without.
namespace kvstore::testing {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the test speaks of nothing else

const std::vector<std::string> kMetrics = {"departures", "delay", "planes", "fuel"};

/// One step of the process that is killed; it takes them in this order.
struct Deed {
  enum class Kind : uint8_t { kWrite, kCompact, kRoll, kDeclare };
  Kind kind = Kind::kWrite;
  std::vector<ReportModel::Point> points;
  WriteBatchOptions options;
  std::vector<Rollup> rollups;
};

/// The steps after that, in a process that is not killed: a repeated delete would delete more.
struct Rest {
  std::set<size_t> deleted_metrics;
  TimeSpan deleted;
  std::optional<SegmentKey> key;
  uint64_t queries_seed = 0;
};

std::vector<Deed> ChooseDeeds(ReportChoices& choices, const ReportInfo& info, uint64_t round) {
  Random& random = choices.random();
  std::vector<Deed> deeds;
  for (uint64_t i = 0; i < 30; ++i) {
    Deed& deed = deeds.emplace_back();
    const uint64_t choice = random.Below(10);
    if (choice == 0) deed.kind = Deed::Kind::kCompact;
    if (choice == 1 || choice == 2) deed.kind = Deed::Kind::kRoll;
    if (choice == 3) {
      deed.kind = Deed::Kind::kDeclare;
      deed.rollups = choices.Rollups(info);
    }
    if (deed.kind != Deed::Kind::kWrite) continue;
    deed.points = choices.Points(info, random.OneIn(5) ? 300 : 20);
    deed.options = {.batch = std::to_string(round) + "/" + std::to_string(i), .add = random.OneIn(3)};
  }
  return deeds;
}

Rest ChooseRest(ReportChoices& choices, const ReportInfo& info) {
  Random& random = choices.random();
  Rest rest{.queries_seed = random.Next()};
  for (size_t metric = 0; metric < kMetrics.size(); ++metric) {
    if (random.OneIn(3)) rest.deleted_metrics.insert(metric);
  }
  const auto from = static_cast<int64_t>(random.Below(ReportChoices::kHours)) * ReportChoices::kHour;
  rest.deleted = {from, from + (1 + static_cast<int64_t>(random.Below(48))) * ReportChoices::kHour};
  if (info.keys.size() < 4 && random.OneIn(5)) {
    rest.key = SegmentKey{"key " + std::to_string(info.keys.size()), "none"};
  }
  return rest;
}

absl::Status Do(const Metadata& metadata, ReportChoices& choices, const ReportInfo& info, const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::kWrite:
      return WriteBatch(metadata, choices.BatchOf(info, deed.points), deed.options).status();
    case Deed::Kind::kCompact:
      return CompactReport(metadata, "flights", {}).status();
    case Deed::Kind::kRoll:
      return MakeRollups(metadata, "flights", {.keep_all = true}).status();
    case Deed::Kind::kDeclare:
      return metadata.SetRollups("flights", deed.rollups);
  }
  return absl::OkStatus();
}

/// How many deeds were done if one of them has failed.
constexpr uint64_t kFailed = UINT64_MAX;

/// The main function of the process that is killed.
///
/// done  how many deeds are done, for the process that waits; kFailed if one cannot be.
int Load(const std::filesystem::path& dir, const std::vector<Deed>& deeds, std::atomic<uint64_t>& done) {
  const auto fail = [&](const absl::Status& status) {
    ADD_FAILURE() << status;
    done = kFailed;
    return 1;
  };
  auto store = Open({.data = dir});
  if (!store.ok()) return fail(store.status());
  const Metadata metadata(**store, "reports");
  const auto info = metadata.Get("flights", kMetrics);
  if (!info.ok()) return fail(info.status());
  ReportChoices choices(0);
  for (const Deed& deed : deeds) {
    if (const absl::Status status = Do(metadata, choices, *info, deed); !status.ok()) return fail(status);
    ++done;
  }
  while (true) ::pause();
}

/// The main function of the process after it. `model` is the state before both.
int GoOn(const std::filesystem::path& dir, const std::vector<Deed>& deeds, const Rest& rest,
         ReportModel model) {
  auto store = Open({.data = dir});
  if (!store.ok()) return 2;
  const Metadata metadata(**store, "reports");
  auto info = metadata.Get("flights", kMetrics);
  if (!info.ok()) return 3;
  ReportChoices choices(rest.queries_seed);
  const auto ask = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ExpectModelsAnswer(metadata, model, choices.PlainQuery(model.info()));
      AskBothWays(metadata, choices.WideQuery(model.info())).IgnoreError();
    }
  };
  for (const Deed& deed : deeds) {
    if (deed.kind != Deed::Kind::kWrite) continue;
    EXPECT_OK(Do(metadata, choices, *info, deed));
    model.Write(deed.points, deed.options.add);
  }
  ask(20);
  EXPECT_OK(MakeRollups(metadata, "flights", {.keep_all = true}));
  ask(10);
  ReportInfo deleted = *info;
  deleted.metrics.clear();
  for (const size_t metric : rest.deleted_metrics) deleted.metrics.push_back(info->metrics[metric]);
  EXPECT_OK(DeletePoints(metadata, deleted, rest.deleted));
  model.Delete(rest.deleted_metrics, rest.deleted.from, rest.deleted.to);
  if (rest.key) {
    EXPECT_OK(metadata.AddKey("flights", *rest.key));
    model.AddKey(*rest.key);
  }
  ask(10);
  return ::testing::Test::HasFailure() ? 1 : 0;
}

/// The model has what GoOn has done.
void Apply(ReportModel& model, const std::vector<Deed>& deeds, const Rest& rest) {
  for (const Deed& deed : deeds) {
    if (deed.kind == Deed::Kind::kWrite) model.Write(deed.points, deed.options.add);
  }
  model.Delete(rest.deleted_metrics, rest.deleted.from, rest.deleted.to);
  if (rest.key) model.AddKey(*rest.key);
}

/// This process never opens the store: a child that is forked from one with RocksDB's threads would lack
/// them.
TEST(KilledReports, EveryAnswerIsTheModels) {
  const TempDir dir;
  const uint64_t seed = Seed("killed reports");
  ReportChoices choices(seed);
  Random& random = choices.random();
  const ReportInfo report = choices.Report();
  ASSERT_EQ(Wait(Fork([&] {
              auto store = Open({.data = dir / "store"});
              return store.ok() && Metadata(**store, "reports").Create(report).ok() ? 0 : 1;
            })).code,
            0);
  void* memory = ::mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& done = *new (memory) std::atomic<uint64_t>(0);
  ReportModel model(report);
  const uint64_t rounds = Rounds("KV_TEST_KILLS", 15);
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::vector<Deed> deeds = ChooseDeeds(choices, model.info(), round);
    const Rest rest = ChooseRest(choices, model.info());
    done = 0;
    const uint64_t wait_for = random.Below(deeds.size());
    const pid_t loader = Fork([&] { return Load(dir / "store", deeds, done); });
    while (done < wait_for) ::sched_yield();
    // This waits for nothing: it makes the moment of the kill random.
    ::usleep(static_cast<useconds_t>(random.Below(5'000)));
    Kill(loader);
    ASSERT_NE(done, kFailed);
    ASSERT_EQ(Wait(Fork([&] { return GoOn(dir / "store", deeds, rest, model); })).code, 0)
        << "seed " << seed << ", killed after " << done << " of " << deeds.size();
    Apply(model, deeds, rest);
  }
  ::munmap(memory, sizeof(std::atomic<uint64_t>));
}

}  // namespace
}  // namespace kvstore::testing
