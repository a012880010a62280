#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "assembly/open_router.h"
#include "backends/rocksdb/backend.h"
#include "backup/layout.h"
#include "backup/prune.h"
#include "backup/verify.h"
#include "tests/backup/fake_store.h"
#include "tests/backup/units_of.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"

/// kill -9 at each named step: nothing that was complete is lost, nothing incomplete is listed, and the next
/// run goes on. In a program of its own, because it forks.
namespace kvstore {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using backup::Manifest;
using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::IsEmpty;

/// Whether the threads that this process has joined are gone for the kernel, too, so that it may fork.
bool IsAlone() {
#ifdef __SANITIZE_THREAD__
  return true;
#else
  const fs::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks)) == 1;
#endif
}

/// Whether the embedded store has the state of a dataset in a migration or in a restore.
bool HasStates(Router& router) {
  auto& engine = static_cast<RocksDbBackend&>(**router.keeper().FindBackend(kRocksDb)).engine();
  const std::unique_ptr<rocksdb::Iterator> at(engine.db().NewIterator({}, engine.meta()));
  at->Seek("migration/");
  return at->Valid() && at->key().starts_with("migration/");
}

class BackupKilled : public BackupTest {
 protected:
  /// Runs `body` in a process that is killed when it reaches the step for the `count`th time. Returns whether
  /// it was; else it has run to its end.
  static bool KilledAt(const std::string& step, int count, const std::function<absl::Status()>& body) {
    EXPECT_TRUE(testing::Eventually(IsAlone));
    const testing::Exit exit = testing::Wait(testing::Fork([&] {
      std::atomic<int> reached{0};
      SetFailPointHook([&](std::string_view point) {
        if (point == step && ++reached == count) std::raise(SIGKILL);
      });
      return body().ok() ? 0 : 1;
    }));
    EXPECT_NE(exit.code, 1) << step << " " << count;
    return exit.signal == SIGKILL;
  }

  /// The store of blobs in another folder of the test.
  std::unique_ptr<BlobStore> OpenIn(const std::string& name) const {
    auto opened = OpenBlobStore("file:" + (dir_ / name).string());
    EXPECT_OK(opened);
    return opened.ok() ? *std::move(opened) : nullptr;
  }
};

TEST_F(BackupKilled, DuringACreateBeforeEachObject) {
  int count = 0;
  for (bool killed = true; killed;) {
    const std::string name = fmt::format("killed-{}", ++count);
    {
      const auto blobs = OpenIn(name);
      killed = KilledAt("backup-object", count, [&] { return Create(*blobs).status(); });
    }
    blobs_ = OpenIn(name);
    if (!killed) break;
    EXPECT_THAT(Live(), IsEmpty());
    const size_t there = CountObjects();
    const Manifest made = MustCreate();
    EXPECT_EQ(made.sent_objects, store_.files().size() - there);
    EXPECT_THAT(Live(), ElementsAre(made.id));
    EXPECT_EQ(Restored(made), store_.files());
  }
  EXPECT_EQ(count, static_cast<int>(store_.files().size()) + 1);
}

TEST_F(BackupKilled, DuringACreateBesideWhatIsComplete) {
  const Manifest first = MustCreate();
  const auto files_of_first = store_.files();
  store_.PutTable(13, "new");
  for (const char* step : {"backup-checkpoint", "backup-object", "backup-manifest"}) {
    EXPECT_TRUE(KilledAt(step, 1, [&] { return Create(*blobs_).status(); })) << step;
    EXPECT_THAT(Live(), ElementsAre(first.id)) << step;
    EXPECT_EQ(Restored(first), files_of_first) << step;
  }
  // All objects were there before the last kill.
  EXPECT_EQ(MustCreate().sent_objects, 0u);
}

TEST_F(BackupKilled, DuringARestore) {
  const Manifest made = MustCreate();
  const auto restore = [&](const fs::path& folder) { return backup::RestoreBackup(made, *blobs_, folder); };
  const int files = static_cast<int>(store_.files().size());
  for (int count = 1; count <= files + 1; ++count) {
    const fs::path folder = dir_ / fmt::format("killed-{}", count);
    const std::string step = count <= files ? "restore-file" : "restore-mark";
    const int nth = count <= files ? count : 1;
    EXPECT_TRUE(KilledAt(step, nth, [&] { return restore(folder); })) << step << " " << nth;
    // It is not taken for a store, nor for an empty folder.
    EXPECT_FALSE(fs::exists(folder / "KVSTORE"));
    EXPECT_THAT(restore(folder), FailsWith(StatusCode::kFailedPrecondition, "another restore has written"));
    fs::remove_all(folder);
    EXPECT_OK(restore(folder));
    EXPECT_EQ(testing::FilesIn(folder), store_.files());
  }
}

TEST_F(BackupKilled, DuringAPrune) {
  ShiftWallClock(-2000);
  const Manifest first = MustCreate();
  store_.RemoveTable(10);
  store_.PutTable(13, "in its place");
  ShiftWallClock(0);
  const Manifest second = MustCreate();
  const auto prune = [&] { return backup::PruneBackups(*blobs_, 1).status(); };

  EXPECT_TRUE(KilledAt("prune-remove", 1, prune));
  EXPECT_THAT(Live(), ElementsAre(first.id, second.id));
  EXPECT_OK(prune());
  EXPECT_THAT(Live(), ElementsAre(second.id));

  ShiftWallClock(static_cast<int64_t>(backup::kGraceMs + backup::kHourMs));
  for (const char* step : {"prune-object", "prune-manifest"}) {
    EXPECT_TRUE(KilledAt(step, 1, prune)) << step;
    EXPECT_THAT(Live(), ElementsAre(second.id)) << step;
    EXPECT_EQ(Restored(second), store_.files()) << step;
  }
  EXPECT_OK(prune());
  EXPECT_EQ(CountObjects(), store_.files().size());
  EXPECT_THAT(backup::ReadManifest(*blobs_, first.id), FailsWith(StatusCode::kNotFound, first.id));
}

TEST_F(BackupKilled, DuringARestoreOfADataset) {
  // The engine's threads never end, so whatever opens a store is a process of its own. Returns whether `body`
  // did.
  const auto in_child = [this](const std::function<bool(Router & router)>& body) {
    return testing::Wait(testing::Fork([&] {
             const auto router = OpenRouter({.data = dir_ / "store"});
             return router.ok() && body(**router) ? 0 : 1;
           })).code == 0;
  };
  ASSERT_TRUE(in_child([this](Router& router) {
    const CellWrite cell{"x", "v", 1};
    return router.CreateDataset({.name = "rows"}).ok() && router.PutRow("rows", "r", {&cell, 1}, {}).ok() &&
           testing::BackUp(router, "rows", *blobs_).ok();
  }));
  const Manifest made = *backup::ReadManifest(*blobs_, *backup::NewestBackup(*blobs_));
  const auto restore = [&](Router& router) {
    return testing::RestoreAs(router, made, *blobs_, "copy", "rocksdb");
  };
  for (const char* step : {"restore-units", "restore-serving"}) {
    EXPECT_TRUE(KilledAt(step, 1, [&] { return restore(**OpenRouter({.data = dir_ / "store"})); })) << step;
    EXPECT_TRUE(in_child([&](Router& router) {
      return absl::IsNotFound(router.keeper().LoadEntry("copy").status()) && !HasStates(router) &&
             restore(router).ok() && testing::UnitsOf(router, "copy") == testing::UnitsOf(router, "rows") &&
             router.DropDataset("copy", {}).ok();
    })) << step;
  }
}

}  // namespace
}  // namespace kvstore
