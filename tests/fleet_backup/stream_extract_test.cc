#include "fleet_backup/stream_extract.h"

#include <gtest/gtest.h>

#include <string>

#include "blobstore/open_blob_store.h"
#include "catalog/shared_nodes.h"
#include "fleet_backup/piece_sender.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests of what a damaged or hostile manifest cannot do to a restore of a server.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;

TEST(StreamExtract, ASizeThatNoFileHasIsRefusedBeforeMemoryIsTakenForIt) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto blobs, OpenBlobStore("file:" + (dir / "blobs").string()));
  for (const std::string& path : {PiecePath(0), std::string(kSharedNodesFile)}) {
    backup::Manifest manifest;
    manifest.files = {
        {.path = path, .blob = "objects/file-1", .size = kMaxBlobBytes, .checksum = std::string(64, 'a')}};
    const auto refused = FailsWith(StatusCode::kDataLoss, "the manifest is damaged");
    if (path == kSharedNodesFile) {
      EXPECT_THAT(ReadNodesFile(manifest, *blobs), refused);
    } else {
      EXPECT_THAT(ExtractStream(manifest, *blobs, dir.path(), nullptr), refused);
    }
  }
}

}  // namespace
}  // namespace kvstore::fleet_backup
