#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "kvstore_api/open.h"
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

/// Where the rows are, and how the process ended.
enum class Left { kInTables, kInLog, kInLogByAKill };

/// Makes a store of kRows rows in `dir`.
int Fill(const fs::path& dir, Left left) {
  auto store = Open({.data = dir});
  if (!store.ok() || !(*store)->CreateDataset({.name = "rows", .compression = Compression::kNone}).ok())
    return 1;
  for (int i = 0; i < kRows; ++i) {
    const std::string value = Value(i);
    const CellWrite cell{"x", value, 1};
    if (!(*store)->PutRow("rows", Row(i), {&cell, 1}, {}).ok()) return 1;
  }
  if (left == Left::kInLogByAKill) ::_exit(0);  // as kill -9 would
  if (left == Left::kInTables && !(*store)->Compact("rows", nullptr).ok()) return 1;
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

/// Whether opening the store is DATA_LOSS, in words that contain these. In a process of its own: none that
/// opened a store can fork.
bool IsDataLoss(const fs::path& dir, const std::string& words) {
  return testing::Wait(testing::Fork([&] {
           const auto status = Open({.data = dir, .create_if_missing = false}).status();
           if (absl::IsDataLoss(status) && absl::StrContains(status.message(), words)) return 0;
           std::fprintf(stderr, "%s\n", status.ToString().c_str());
           return 1;
         })).code == 0;
}

class Damage : public ::testing::Test {
 protected:
  /// Damages one file of the kind with `damage`, again and again on a fresh copy, and expects of each reading
  /// one of the outcomes allowed.
  void Try(Left left, const std::string& kind, bool missing_tail,
           const std::function<void(std::string& bytes, testing::Random&)>& damage, int rounds) {
    const TempDir dir;
    ASSERT_EQ(testing::Wait(testing::Fork([&] { return Fill(dir / "good", left); })).code, 0);
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

TEST_F(Damage, AFlippedBitInATableIsReported) { Try(Left::kInTables, ".sst", false, FlipABit, 30); }
TEST_F(Damage, ATableCutShortIsReported) { Try(Left::kInTables, ".sst", false, CutShort, 5); }
TEST_F(Damage, AnEmptyManifestIsReported) { Try(Left::kInTables, "MANIFEST", false, Empty, 1); }
TEST_F(Damage, AFlippedBitInTheManifestIsReported) { Try(Left::kInTables, "MANIFEST", false, FlipABit, 15); }
TEST_F(Damage, AManifestCutShortIsReported) { Try(Left::kInTables, "MANIFEST", false, CutShort, 5); }
TEST_F(Damage, ADamagedCurrentFileIsReported) { Try(Left::kInTables, "CURRENT", false, CutShort, 5); }
TEST_F(Damage, AFlippedBitInTheLogLosesItsTailAtMost) {
  Try(Left::kInLogByAKill, ".log", true, FlipABit, 20);
}
TEST_F(Damage, ALogCutShortLosesItsTailAtMost) { Try(Left::kInLogByAKill, ".log", true, CutShort, 10); }

void ZeroTheEnd(std::string& bytes, testing::Random& random) {
  const size_t from = random.Below(bytes.size() - 1);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(), '\0');
}

// After an orderly close nothing may be gone, and no tail is one that a crash has torn.
TEST_F(Damage, ALogCutShortAfterACloseIsReported) { Try(Left::kInLog, ".log", false, CutShort, 5); }
TEST_F(Damage, AnEmptyLogAfterACloseIsReported) { Try(Left::kInLog, ".log", false, Empty, 1); }
TEST_F(Damage, AZeroedEndOfALogAfterACloseIsReported) { Try(Left::kInLog, ".log", false, ZeroTheEnd, 5); }
TEST_F(Damage, AFlippedBitInALogAfterACloseIsReported) { Try(Left::kInLog, ".log", false, FlipABit, 10); }

TEST_F(Damage, ALogThatIsGoneAfterACloseIsReported) {
  const TempDir dir;
  ASSERT_EQ(testing::Wait(testing::Fork([&] { return Fill(dir / "s", Left::kInLog); })).code, 0);
  const auto logs = Files(dir / "s", ".log");
  ASSERT_EQ(logs.size(), 1u);
  fs::remove(logs[0]);
  EXPECT_TRUE(IsDataLoss(dir / "s", logs[0].string() + " is damaged"));
}

// A crash between the two files of the seal, or a version that wrote the first only.
TEST_F(Damage, EitherHalfOfTheSealHoldsByItself) {
  const TempDir dir;
  ASSERT_EQ(testing::Wait(testing::Fork([&] { return Fill(dir / "good", Left::kInLog); })).code, 0);
  for (const char* gone : {"SEAL", "SEAL.logs"}) {
    fs::remove_all(dir / "s");
    fs::copy(dir / "good", dir / "s", fs::copy_options::recursive);
    ASSERT_TRUE(fs::remove(dir / "s" / gone));
    EXPECT_EQ(testing::Wait(testing::Fork([&] { return ReadAll(dir / "s", false); })).code, kIntact) << gone;
  }
}

TEST_F(Damage, ATableThatIsGoneIsNamed) {
  const TempDir dir;
  ASSERT_EQ(testing::Wait(testing::Fork([&] { return Fill(dir / "s", Left::kInTables); })).code, 0);
  for (const fs::path& table : Files(dir / "s", ".sst")) {
    fs::rename(table, dir / "away");
    EXPECT_TRUE(IsDataLoss(dir / "s", table.string()));
    fs::rename(dir / "away", table);
  }
}

}  // namespace
}  // namespace kvstore
