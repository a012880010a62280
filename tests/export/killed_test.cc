#include <atomic>
#include <csignal>
#include <functional>
#include <iterator>
#include <string>

#include "base/fail_point.h"
#include "tests/export/export_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"

/// kill -9 at each named step: there is no export unless it is complete, and the next run makes it. In a
/// program of its own, because it forks.
namespace kvstore {
namespace {

using exports::Manifest;
using ::testing::Contains;
using testing::ExportTest;
using testing::FakeSource;
using ::testing::Not;
using testing::RowUnitOf;

/// Whether the threads that this process has joined are gone for the kernel, too, so that it may fork.
bool OnlyThreadIsLeft() {
#ifdef __SANITIZE_THREAD__
  return true;
#else
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks)) == 1;
#endif
}

class ExportKilled : public ExportTest {
 protected:
  void SetUp() override { SKIP_WITHOUT_PARQUET(); }

  static FakeSource Source() {
    std::vector<std::vector<FakeSource::Page>> parts;
    for (const char* row : {"a", "b", "c", "d"}) parts.push_back({{RowUnitOf(row, "x", {{1, row}})}});
    return FakeSource(std::move(parts));
  }
  /// Exports in a process that is killed when it reaches the step for the `count`th time. Returns whether it
  /// was; else it has run to its end.
  bool KilledAt(const std::string& step, int count, const std::string& token) {
    EXPECT_TRUE(testing::Eventually(OnlyThreadIsLeft));
    const testing::Exit exit = testing::Wait(testing::Fork([&] {
      std::atomic<int> reached{0};
      SetFailPointHook([&](std::string_view point) {
        if (point == step && ++reached == count) std::raise(SIGKILL);
      });
      FakeSource source = Source();
      return exports::ExportDataset(source, Request(Shape::kRows), *blobs_, Options(token)).ok() ? 0 : 1;
    }));
    EXPECT_NE(exit.code, 1) << step << " " << count;
    return exit.signal == SIGKILL;
  }
};

TEST_F(ExportKilled, LeavesNoManifestAndTheNextCallMakesTheExport) {
  int runs = 0;
  for (const char* step : {"export-file", "export-manifest"}) {
    for (int count = 1;; ++count) {
      const std::string token = "run" + std::to_string(++runs);
      const bool killed = KilledAt(step, count, token);
      if (!killed) break;
      EXPECT_THAT(Blobs(), Not(Contains(exports::ManifestBlob(token)))) << step << " " << count;
      EXPECT_EQ(*exports::FindExport(*blobs_, token), std::nullopt);
      FakeSource source = Source();
      ASSERT_OK_AND_ASSIGN(const Manifest made,
                           exports::ExportDataset(source, Request(Shape::kRows), *blobs_, Options(token)));
      // The killed call's files are in a folder of their own, which no manifest names.
      EXPECT_EQ(Lines(made, {"rows"}).size(), 4u);
      size_t in_folder = 0;
      for (const std::string& blob : Blobs())
        in_folder += blob.starts_with(token + "/" + made.data + "/") ? 1 : 0;
      EXPECT_EQ(in_folder, made.files.size());
    }
  }
  // At least one file is put, and the manifest, before an export runs to its end.
  EXPECT_GE(runs, 4);
}

}  // namespace
}  // namespace kvstore
