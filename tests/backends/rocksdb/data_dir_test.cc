#include "backends/rocksdb/engine/data_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::rocks {
namespace {

namespace fs = std::filesystem;
using testing::FailsWith;
using testing::TempDir;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// Returns the names and contents of all files below a folder.
std::map<std::string, std::string> Contents(const fs::path& dir) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    std::stringstream text;
    if (entry.is_regular_file()) text << std::ifstream(entry.path()).rdbuf();
    contents[entry.path()] = text.str();
  }
  return contents;
}

TEST(DataDir, IsMadeWhereThereIsNothing) {
  const TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(const DataDir held, DataDir::Open(dir / "a" / "b", true));
    EXPECT_EQ(held.catalog(), dir / "a" / "b" / "catalog.json");
  }
  EXPECT_OK(DataDir::Open(dir / "a" / "b", false));
  // An empty folder is treated like a missing one.
  fs::create_directory(dir / "empty");
  EXPECT_OK(DataDir::Open(dir / "empty", true));
}

TEST(DataDir, IsForNobodyElseOnTheMachineWhateverTheUmask) {
  const TempDir dir;
  const mode_t before = ::umask(0);
  const auto held = DataDir::Open(dir / "a" / "store" / "", true);
  const auto relative = DataDir::Open(fs::relative(dir / "b"), true);
  ::umask(before);
  ASSERT_OK(held.status());
  ASSERT_OK(relative.status());
  EXPECT_EQ(fs::status(dir / "a" / "store").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir / "b").permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(dir / "a" / "store")) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
  }
}

TEST(DataDir, ItsLockIsNoLink) {
  const TempDir dir;
  Write(dir / "victim", "as it was");
  fs::create_directory(dir / "store");
  fs::create_symlink(dir / "victim", dir / "store" / "LOCK");
  EXPECT_FALSE(DataDir::Open(dir / "store", true).ok());
  EXPECT_EQ(Contents(dir.path())[dir / "victim"], "as it was");
}

TEST(DataDir, IsNotMadeUnlessAskedFor) {
  const TempDir dir;
  EXPECT_THAT(DataDir::Open(dir / "none", false),
              FailsWith(absl::StatusCode::kNotFound, "there is no store at"));
  EXPECT_FALSE(fs::exists(dir / "none"));
  EXPECT_THAT(DataDir::Open(dir.path(), false), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(DataDir, OfSomebodyElseIsLeftAlone) {
  const TempDir dir;
  Write(dir / "thesis.txt", "years of work");
  const auto before = Contents(dir.path());
  EXPECT_THAT(DataDir::Open(dir.path(), true), FailsWith(kPrecondition, dir.path().string()));
  EXPECT_EQ(Contents(dir.path()), before);
  EXPECT_THAT(DataDir::Open(dir / "thesis.txt", true), FailsWith(kPrecondition, "is not a directory"));
  EXPECT_EQ(Contents(dir.path()), before);
}

TEST(DataDir, OfANewerFormatOrWithADamagedMarkIsLeftAlone) {
  for (const auto& [mark, message] :
       std::map<std::string, std::string>{{"kvstore format 2\n", "format 2"},
                                          {"kvstore format\n", "does not say"},
                                          {"", "does not say"},
                                          {"something else\n", "does not say"}}) {
    const TempDir dir;
    Write(dir / "KVSTORE", mark);
    const auto before = Contents(dir.path());
    EXPECT_THAT(DataDir::Open(dir.path(), true), FailsWith(kPrecondition, message)) << mark;
    EXPECT_EQ(Contents(dir.path()), before);
  }
}

TEST(DataDir, IsHeldByOneProcessWhichTheMessageNames) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const DataDir held, DataDir::Open(dir / "s", true));
  const auto second = [&] {
    const auto opened = DataDir::Open(dir / "s", false);
    return opened.status().code() == absl::StatusCode::kUnavailable &&
                   std::string(opened.status().message())
                           .find("is open in process " + std::to_string(::getppid())) != std::string::npos
               ? 0
               : 1;
  };
  EXPECT_EQ(testing::Wait(testing::Fork(second)).code, 0);
  // A second open in this process is refused, too.
  EXPECT_THAT(DataDir::Open(dir / "s", false),
              FailsWith(absl::StatusCode::kUnavailable, "is open in process " + std::to_string(::getpid())));
}

TEST(DataDir, IsFreeAgainWhenItsHolderIsKilled) {
  const TempDir dir;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = testing::Fork([&] {
    const auto held = DataDir::Open(dir / "s", true);
    const char ok = held.ok() ? 'y' : 'n';
    if (::write(ends[1], &ok, 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char ok = 0;
  ASSERT_EQ(::read(ends[0], &ok, 1), 1);
  EXPECT_EQ(ok, 'y');
  EXPECT_THAT(DataDir::Open(dir / "s", false),
              FailsWith(absl::StatusCode::kUnavailable, std::to_string(child)));
  testing::Kill(child);
  EXPECT_OK(DataDir::Open(dir / "s", false));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(DataDir, CutShortWhileItWasMadeIsMadeAgain) {
  const TempDir dir;
  // A crash between the creation of the folder and of its mark leaves only the lock file, or a half-written
  // mark.
  { ASSERT_OK(DataDir::Open(dir / "s", true)); }
  fs::remove(dir / "s" / "KVSTORE");
  EXPECT_OK(DataDir::Open(dir / "s", true));
}

TEST(DataDir, WithoutPermissionSaysSo) {
  if (::geteuid() == 0) {
    // Root may do anything, so a child process drops to another user.
    const TempDir dir;
    { ASSERT_OK(DataDir::Open(dir / "s", true)); }
    fs::permissions(dir.path(), fs::perms::all);
    const auto as_nobody = [&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 2;
      const auto existing = DataDir::Open(dir / "s", false);
      const auto made = DataDir::Open("/proc/kvstore", true);
      return absl::IsUnavailable(existing.status()) && !made.ok() ? 0 : 1;
    };
    fs::permissions(dir / "s", fs::perms::owner_all);
    EXPECT_EQ(testing::Wait(testing::Fork(as_nobody)).code, 0);
    return;
  }
  const TempDir dir;
  { ASSERT_OK(DataDir::Open(dir / "s", true)); }
  fs::permissions(dir / "s", fs::perms::none);
  EXPECT_THAT(DataDir::Open(dir / "s", false),
              FailsWith(absl::StatusCode::kUnavailable, dir.path().string()));
  fs::permissions(dir / "s", fs::perms::owner_all);
}

}  // namespace
}  // namespace kvstore::rocks
