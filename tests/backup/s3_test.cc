#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backup/layout.h"
#include "backup/prune.h"
#include "backup/verify.h"
#include "tests/backup/fake_store.h"
#include "tests/blobstore/s3_server.h"

/// The whole way through a bucket of a real server. Skipped where ./dev could install none.
namespace kvstore {
namespace {

using backup::Manifest;
using testing::BackupTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::S3Server;

class BackupInABucket : public BackupTest {
 protected:
  void SetUp() override {
    if (!S3Server::IsInstalled()) GTEST_SKIP() << "no S3 server is installed; ./dev test installs one";
    server_ = std::make_unique<S3Server>();
    auto opened = OpenBlobStore(S3Server::Url("backups"), server_->options());
    ASSERT_OK(opened);
    blobs_ = *std::move(opened);
  }

  std::unique_ptr<S3Server> server_;
};

TEST_F(BackupInABucket, FromTheFirstBackupToAPrune) {
  store_.Put("rocksdb/000020.log", "");
  const Manifest first = MustCreate();
  EXPECT_EQ(Restored(first), store_.files());
  store_.PutTable(13, "a new table");
  const Manifest second = MustCreate();
  EXPECT_EQ(second.sent_objects, 1u);
  ASSERT_OK_AND_ASSIGN(const auto verified, VerifyBackup(second, *blobs_, backup::VerifyDepth::kBytes));
  EXPECT_THAT(verified.problems, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const auto pruned, backup::PruneBackups(*blobs_, 1));
  EXPECT_THAT(pruned.removed, ElementsAre(first.id));
  EXPECT_THAT(Live(), ElementsAre(second.id));
}

}  // namespace
}  // namespace kvstore
