#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "registry/open.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Files damaged at rest: the store says so, in one of its codes, and nothing that is not damaged is lost.
/// Each attempt runs in a process of its own, so that an abort deep in the engine would be seen as what it
/// is.
namespace kvstore {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

constexpr int kRows = 2000;

std::string Row(int i) { return "row" + std::to_string(10'000 + i); }
std::string Value(int i) { return std::string(100, static_cast<char>('a' + i % 26)) + std::to_string(i); }

/// Makes a store of kRows rows in `dir`, in files or, with `in_log`, in the log only.
int Fill(const fs::path& dir, bool in_log) {
  auto store = Open({.data = dir});
  if (!store.ok() || !(*store)->CreateDataset({.name = "rows", .compression = Compression::kNone}).ok())
    return 1;
  for (int i = 0; i < kRows; ++i) {
    const std::string value = Value(i);
    const CellWrite cell{"x", value, 1};
    if (!(*store)->PutRow("rows", Row(i), {&cell, 1}, {}).ok()) return 1;
  }
  if (in_log) ::_exit(0);  // as kill -9 would
  if (!(*store)->Compact("rows", nullptr).ok()) return 1;
  store->reset();
  return 0;
}

enum Outcome { kIntact = 10, kReported = 11, kSilentlyWrong = 12 };

/// Opens the store and reads all of it. `missing_tail`: rows at the end may be gone, as after a torn write.
int ReadAll(const fs::path& dir, bool missing_tail) {
  const auto in_our_codes = [](const absl::Status& status) {
    return absl::IsDataLoss(status) || absl::IsUnavailable(status) || absl::IsFailedPrecondition(status);
  };
  auto store = Open({.data = dir, .create_if_missing = false});
  if (!store.ok()) return in_our_codes(store.status()) ? kReported : kSilentlyWrong;
  bool reported = false;
  bool gone = false;
  for (int i = 0; i < kRows; ++i) {
    const auto row = (*store)->GetRow("rows", Row(i), {});
    if (!row.ok()) {
      if (!in_our_codes(row.status())) return kSilentlyWrong;
      reported = true;
    } else if (row->items.empty() && missing_tail) {
      gone = true;
    } else if (row->items.empty() || gone || row->items[0].cells[0].value != Value(i)) {
      return kSilentlyWrong;
    }
  }
  store->reset();
  return reported ? kReported : kIntact;
}

std::string ReadFile(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The store's files whose names begin so, or end so for one that begins with a dot.
std::vector<fs::path> Files(const fs::path& dir, const std::string& kind) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir / "rocksdb")) {
    const std::string name = entry.path().filename();
    if (kind[0] == '.' ? name.ends_with(kind) : name.starts_with(kind)) files.push_back(entry.path());
  }
  return files;
}

class Damage : public ::testing::Test {
 protected:
  /// Damages one file of the kind with `damage`, again and again on a fresh copy, and expects of each reading
  /// one of the outcomes allowed.
  void Try(bool in_log, const std::string& kind, bool missing_tail,
           const std::function<void(std::string& bytes, testing::Random&)>& damage, int rounds) {
    const TempDir dir;
    ASSERT_EQ(testing::Wait(testing::Fork([&] { return Fill(dir / "good", in_log); })).code, 0);
    testing::Random random(testing::Seed(kind));
    std::map<int, int> outcomes;
    for (int round = 0; round < rounds; ++round) {
      fs::remove_all(dir / "bad");
      fs::copy(dir / "good", dir / "bad", fs::copy_options::recursive);
      const auto files = Files(dir / "bad", kind);
      ASSERT_FALSE(files.empty()) << kind;
      const fs::path& file = files[random.Below(files.size())];
      std::string bytes = ReadFile(file);
      const std::string before = bytes;
      damage(bytes, random);
      std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
      const testing::Exit exit =
          testing::Wait(testing::Fork([&] { return ReadAll(dir / "bad", missing_tail); }));
      ASSERT_EQ(exit.signal, 0) << file << ", round " << round;
      ASSERT_TRUE(exit.code == kIntact || exit.code == kReported)
          << file << ", round " << round << ": " << exit.code;
      ++outcomes[exit.code];
    }
    EXPECT_GT(outcomes[kReported] + (missing_tail ? 1 : 0), 0) << "no damage was noticed at all";
  }
};

void FlipABit(std::string& bytes, testing::Random& random) {
  char& byte = bytes[random.Below(bytes.size())];
  byte = static_cast<char>(byte ^ (1 << random.Below(8)));
}
void CutShort(std::string& bytes, testing::Random& random) { bytes.resize(random.Below(bytes.size())); }
void Empty(std::string& bytes, testing::Random&) { bytes.clear(); }

TEST_F(Damage, AFlippedBitInATableIsReported) { Try(false, ".sst", false, FlipABit, 30); }
TEST_F(Damage, ATableCutShortIsReported) { Try(false, ".sst", false, CutShort, 5); }
TEST_F(Damage, AnEmptyManifestIsReported) { Try(false, "MANIFEST", false, Empty, 1); }
TEST_F(Damage, AFlippedBitInTheManifestIsReported) { Try(false, "MANIFEST", false, FlipABit, 15); }
TEST_F(Damage, AManifestCutShortIsReported) { Try(false, "MANIFEST", false, CutShort, 5); }
TEST_F(Damage, ADamagedCurrentFileIsReported) { Try(false, "CURRENT", false, CutShort, 5); }
TEST_F(Damage, AFlippedBitInTheLogLosesItsTailAtMost) { Try(true, ".log", true, FlipABit, 20); }
TEST_F(Damage, ALogCutShortLosesItsTailAtMost) { Try(true, ".log", true, CutShort, 10); }

}  // namespace
}  // namespace kvstore
