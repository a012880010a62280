#include "cli/output_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() { std::ofstream(path_) << "old"; }

  std::string Read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Returns the names of all files in the folder.
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) names.insert(entry.path().filename());
    return names;
  }

  const testing::TempDir dir_;
  const std::string path_ = (dir_ / "out").string();
};

const std::set<std::string> kOnlyOut = {"out"};

TEST_F(OutputFileTest, GetsItsNameWhenItIsComplete) {
  const std::string megabyte(1 << 20, 'x');
  {
    OutputFile file(path_);
    file.Write("new");
    file.Write(megabyte);
    EXPECT_EQ(Read(), "old");
    EXPECT_EQ(Names().size(), 2u);
    file.Finish();
    EXPECT_TRUE(Read() == "new" + megabyte);
  }
  EXPECT_TRUE(Read() == "new" + megabyte);
  EXPECT_EQ(Names(), kOnlyOut);
}

TEST_F(OutputFileTest, LeavesNothingUnlessItIsFinished) {
  {
    OutputFile file(path_);
    file.Write(std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(Read(), "old");
  EXPECT_EQ(Names(), kOnlyOut);
}

TEST_F(OutputFileTest, LeavesNothingWhenASignalEndsTheProcess) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const pid_t child = testing::Fork([&] {
      OutputFile file(path_);
      file.Write(std::string(1 << 20, 'x'));
      for (;;) ::pause();
      return 0;
    });
    // The file appears after the handlers are there.
    while (Names() == kOnlyOut) ASSERT_FALSE(testing::Ended(child));
    ASSERT_EQ(::kill(child, signal), 0);
    EXPECT_EQ(testing::Wait(child).signal, signal);
    EXPECT_EQ(Read(), "old");
    EXPECT_EQ(Names(), kOnlyOut);
  }
}

TEST_F(OutputFileTest, ASignalThatIsIgnoredStaysIgnored) {
  const pid_t child = testing::Fork([&] {
    std::signal(SIGHUP, SIG_IGN);
    OutputFile file(path_);
    file.Write("new");
    std::raise(SIGHUP);
    file.Finish();
    return 0;
  });
  EXPECT_EQ(testing::Wait(child).code, 0);
  EXPECT_EQ(Read(), "new");
}

TEST_F(OutputFileTest, SignalsActAsBeforeOnceItIsFinished) {
  const pid_t child = testing::Fork([&] {
    OutputFile file(path_);
    file.Finish();
    std::raise(SIGTERM);
    return 0;
  });
  EXPECT_EQ(testing::Wait(child).signal, SIGTERM);
  EXPECT_EQ(Names(), kOnlyOut);
}

}  // namespace
}  // namespace kvstore::cli
