#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "backup/list.h"
#include "tests/fleet_backup/backed_up_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// kill -9 at each named step of a backup of MySQL servers, and of its restore: nothing that was complete is
/// lost, nothing incomplete is listed, no server is left, and the next run goes on.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kKilled = 128 + 9;

class FleetBackupKilled : public ::testing::Test {
 protected:
  std::string slave() { return fleet_.pair().host_b().ToString(); }
  std::vector<std::string> Create() { return {"backup", "create", "--host", slave()}; }
  std::vector<std::string> Live() { return backup::ListBackups(*fleet_.OpenBlobs())->live; }

  BackedUpFleet fleet_;
};

/// Whether a server runs on a folder.
bool HasServer(const fs::path& folder) {
  for (const auto& process : fs::directory_iterator("/proc")) {
    std::ifstream in(process.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(in), {}};
    if (line.starts_with("mariadbd") && line.find(folder.string()) != std::string::npos) return true;
  }
  return false;
}

TEST_F(FleetBackupKilled, DuringACreate) {
  for (const char* const step : {"backup-checkpoint", "backup-object", "backup-manifest"}) {
    EXPECT_EQ(fleet_.Kv(Create(), step).code, kKilled) << step;
    EXPECT_THAT(Live(), IsEmpty()) << step;
  }
  // Objects that the killed calls had sent need not be sent again, unless they have changed since.
  const auto made = fleet_.OkJson(Create())["backup"];
  EXPECT_LT(made["sent_bytes"].get<uint64_t>(), made["bytes"].get<uint64_t>());
  const std::string first = made["id"];
  fleet_.Write("more");
  fleet_.AwaitSlave();
  for (const char* const step : {"backup-checkpoint", "backup-object", "backup-manifest"}) {
    EXPECT_EQ(fleet_.Kv(Create(), step).code, kKilled) << step;
    EXPECT_THAT(Live(), ElementsAre(first)) << step;
    fleet_.Ok({"backup", "verify", "--host", slave(), "--deep"});
  }
}

TEST_F(FleetBackupKilled, WhileTheLogIsSent) {
  fleet_.Ok(Create());
  fleet_.Write("first");
  fleet_.AwaitSlave();
  EXPECT_EQ(fleet_.Kv({"backup", "follow", "--host", slave()}, "binlog-segment").code, kKilled);
  EXPECT_TRUE(backup::ListAll(*fleet_.OpenBlobs(), "log/")->empty());
  ASSERT_OK(fleet_.Ship());
  fleet_.Write("second");
  fleet_.AwaitSlave();
  EXPECT_EQ(fleet_.Kv({"backup", "follow", "--host", slave()}, "binlog-segment").code, kKilled);
  ASSERT_OK(fleet_.Ship());
  fleet_.Ok({"backup", "verify", "--host", slave(), "--deep"});
}

TEST_F(FleetBackupKilled, DuringARestore) {
  fleet_.Write("in the backup");
  fleet_.AwaitSlave();
  fleet_.Ok(Create());
  fleet_.Write("in the log");
  const auto wanted = fleet_.Units();
  const std::string at = std::to_string(NextSecond());
  ASSERT_OK(fleet_.Ship());
  const fs::path folder = fleet_.folder() / "restored";
  const std::vector<std::string> restore = {"backup", "restore", "--shards", "0-3",
                                            "--at",   at,        "--to",     folder.string()};
  for (const char* const step :
       {"host-restore-log", "host-restore-object", "host-restore-prepare", "host-restore-server",
        "host-restore-play", "host-restore-cut", "host-restore-done"}) {
    EXPECT_EQ(fleet_.Kv(restore, step).code, kKilled) << step;
    // It is not taken for what was asked for, and nothing runs on.
    fleet_.Fails(restore, "another restore has written");
    EXPECT_TRUE(Eventually([&] { return !HasServer(folder); })) << step;
    fs::remove_all(folder);
  }
  fleet_.Ok(restore);
  EXPECT_EQ(LookedAt(folder).Units(), OfShards(wanted, {.space = ShardSpace::kId, .first = 0, .last = 3}));
}

}  // namespace
}  // namespace kvstore::testing
