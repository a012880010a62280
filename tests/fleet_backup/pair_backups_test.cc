#include "fleet_backup/pair_backups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "backup/layout.h"
#include "backup/list.h"
#include "base/shift_clock.h"
#include "blobstore/open_blob_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Which backup is found for a host or for shards.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;

class PairBackups : public ::testing::Test {
 protected:
  void TearDown() override { ShiftWallClock(0); }

  BlobOpener Opener() const {
    return [url = "file:" + (dir_ / "blobs").string()] { return OpenBlobStore(url); };
  }
  /// Puts the manifest of a backup that was made so many hours ago, and returns its ID.
  std::string Put(uint64_t domain, int64_t hours_ago, const std::string& master, const std::string& slave,
                  std::vector<backup::ShardSpan> shards) {
    ShiftWallClock(-hours_ago * static_cast<int64_t>(backup::kHourMs));
    EXPECT_OK(AddPair(**Opener()(), domain));
    const auto blobs = OpenPairBackups(Opener(), domain);
    EXPECT_OK(blobs);
    backup::Manifest manifest{.began_ms = WallClockMs(), .engine = "mariadb 10.11"};
    manifest.id = backup::NewBackupId(manifest.began_ms);
    manifest.server = backup::ServerPart{.host = slave,
                                         .master = master,
                                         .slave = slave,
                                         .domain = domain,
                                         .gtid = "1-1-1",
                                         .shards = std::move(shards),
                                         .bytes = 1};
    EXPECT_OK(backup::PutManifest(**blobs, manifest, std::chrono::steady_clock::now()));
    ShiftWallClock(0);
    return manifest.id;
  }
  NewestBackups Newest(uint64_t at_ms = 0) {
    auto found = NewestOfPairs(Opener(), at_ms);
    EXPECT_OK(found);
    return found.ok() ? *std::move(found) : NewestBackups();
  }
  /// Damages the manifest of a backup.
  void Damage(uint64_t domain, const std::string& id) {
    const auto blobs = OpenPairBackups(Opener(), domain);
    ASSERT_OK(blobs);
    ASSERT_OK((*blobs)->Put(backup::ManifestBlob(id), "damaged", PutMode::kReplace));
  }

  const testing::TempDir dir_;
};

TEST_F(PairBackups, TheNewestOfEachPairIsFound) {
  Put(1, 5, "A", "B", {{ShardSpace::kId, 0, 7}});
  const std::string second = Put(1, 3, "B", "A", {{ShardSpace::kId, 0, 7}});
  const std::string other = Put(7, 4, "C", "D", {{ShardSpace::kId, 8, 15}});
  const NewestBackups newest = Newest();
  ASSERT_EQ(newest.backups.size(), 2u);
  EXPECT_EQ(newest.backups[0].manifest.id, second);
  EXPECT_EQ(newest.backups[1].manifest.id, other);
  EXPECT_TRUE(newest.unreadable.empty());
  EXPECT_THAT(*ListPairs(**Opener()()), ElementsAre(1, 7));
  EXPECT_EQ(FindOfHost(Newest(), "A")->manifest.id, second);
  EXPECT_EQ(FindOfHost(Newest(), "D")->manifest.id, other);
  EXPECT_THAT(FindOfHost(Newest(), "X"), FailsWith(StatusCode::kNotFound, "B and A; C and D"));
}

TEST_F(PairBackups, OneOfATimeWasFinishedBefore) {
  const std::string first = Put(1, 5, "A", "B", {{ShardSpace::kId, 0, 7}});
  Put(1, 3, "B", "A", {{ShardSpace::kId, 0, 7}});
  EXPECT_EQ(FindOfHost(Newest(WallClockMs() - 4 * backup::kHourMs), "A")->manifest.id, first);
  EXPECT_TRUE(Newest(WallClockMs() - 6 * backup::kHourMs).backups.empty());
}

TEST_F(PairBackups, ShardsAreFoundWhereTheyWereLast) {
  Put(1, 5, "A", "B", {{ShardSpace::kId, 0, 7}, {ShardSpace::kMod, 0, 3}});
  const std::string moved = Put(2, 3, "C", "D", {{ShardSpace::kId, 4, 5}, {ShardSpace::kId, 6, 9}});
  const auto find = [&](ShardSpace space, uint32_t first, uint32_t last) {
    return FindOfShards(Newest(), {.space = space, .first = first, .last = last});
  };
  EXPECT_EQ(find(ShardSpace::kId, 0, 3)->domain, 1u);
  EXPECT_EQ(find(ShardSpace::kId, 4, 9)->manifest.id, moved);
  EXPECT_EQ(find(ShardSpace::kMod, 0, 3)->domain, 1u);
  EXPECT_THAT(find(ShardSpace::kMod, 0, 4), FailsWith(StatusCode::kNotFound, "4 of them were on A and B"));
  EXPECT_THAT(find(ShardSpace::kId, 3, 9),
              FailsWith(StatusCode::kNotFound, "restore those of one pair at a time"));
  EXPECT_THAT(find(ShardSpace::kId, 100, 100), FailsWith(StatusCode::kNotFound, "db 100"));
}

TEST_F(PairBackups, ADamagedOneHidesNoOther) {
  const std::string first = Put(1, 5, "A", "B", {{ShardSpace::kId, 0, 7}});
  const std::string second = Put(1, 3, "A", "B", {{ShardSpace::kId, 0, 7}});
  Damage(1, second);
  const NewestBackups newest = Newest();
  ASSERT_EQ(newest.backups.size(), 1u);
  EXPECT_EQ(newest.backups[0].manifest.id, first);
  EXPECT_THAT(newest.backups[0].problem, HasSubstr(second));
  EXPECT_TRUE(newest.unreadable.empty());
}

TEST_F(PairBackups, APairWhoseBackupsAreAllDamagedIsNamed) {
  Damage(1, Put(1, 5, "A", "B", {{ShardSpace::kId, 0, 7}}));
  const std::string newer = Put(1, 3, "A", "B", {{ShardSpace::kId, 0, 7}});
  Damage(1, newer);
  Put(7, 4, "C", "D", {{ShardSpace::kId, 8, 15}});
  const NewestBackups newest = Newest();
  ASSERT_EQ(newest.backups.size(), 1u);
  EXPECT_EQ(newest.backups[0].domain, 7u);
  ASSERT_EQ(newest.unreadable.size(), 1u);
  EXPECT_EQ(newest.unreadable[0].domain, 1u);
  const std::string says = "no backup of the pair of GTID domain 1 can be read";
  EXPECT_THAT(newest.unreadable[0].ToString(), HasSubstr(says));
  EXPECT_THAT(FindOfHost(Newest(), "A"), FailsWith(StatusCode::kNotFound, says));
  EXPECT_THAT(FindOfShards(Newest(), {.space = ShardSpace::kId, .first = 0, .last = 7}),
              FailsWith(StatusCode::kNotFound, says));
}

}  // namespace
}  // namespace kvstore::fleet_backup
