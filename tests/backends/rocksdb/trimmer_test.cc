#include "backends/rocksdb/engine/trimmer.h"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <vector>

namespace kvstore::rocks {
namespace {

const DatasetSpec kSpec{.name = "rows"};

TEST(Trimmer, WorksOffSuggestionsInTheirOrder) {
  Trimmer trimmer;
  const auto settings = std::make_shared<FamilySettings>(kSpec);
  std::vector<std::string> trimmed;
  // Suggestions made before the start wait for it.
  trimmer.Suggest(settings, "a");
  trimmer.Start([&](const std::shared_ptr<FamilySettings>& of, const std::string& column) {
    trimmed.push_back(of->name + "/" + column);
  });
  trimmer.Suggest(settings, "b");
  trimmer.Drain();
  EXPECT_EQ(trimmed, (std::vector<std::string>{"rows/a", "rows/b"}));
}

TEST(Trimmer, StopsAfterTheTrimThatRuns) {
  Trimmer trimmer;
  const auto settings = std::make_shared<FamilySettings>(kSpec);
  std::latch running(1);
  std::latch go_on(1);
  int trims = 0;
  trimmer.Start([&](const std::shared_ptr<FamilySettings>&, const std::string&) {
    ++trims;
    running.count_down();
    go_on.wait();
  });
  trimmer.Suggest(settings, "a");
  trimmer.Suggest(settings, "b");
  running.wait();
  go_on.count_down();
  trimmer.Stop();
  EXPECT_LE(trims, 2);
  const int before = trims;
  trimmer.Suggest(settings, "c");
  EXPECT_EQ(trims, before);
}

TEST(Trimmer, ForgetsWhatIsTooMuchAndNeverWaits) {
  Trimmer trimmer;
  const auto settings = std::make_shared<FamilySettings>(kSpec);
  for (int i = 0; i < 100'000; ++i) trimmer.Suggest(settings, std::to_string(i));
  int trims = 0;
  trimmer.Start([&](const std::shared_ptr<FamilySettings>&, const std::string&) { ++trims; });
  trimmer.Drain();
  EXPECT_GT(trims, 0);
  EXPECT_LT(trims, 100'000);
}

}  // namespace
}  // namespace kvstore::rocks
