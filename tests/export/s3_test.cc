#include <memory>
#include <string>

#include "tests/blobstore/s3_server.h"
#include "tests/export/export_fixture.h"

/// The whole way through a bucket of a real server. Skipped where ./dev could install none.
namespace kvstore {
namespace {

using testing::ExportTest;
using testing::FakeSource;
using testing::RowUnitOf;
using testing::S3Server;

class ExportInABucket : public ExportTest {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PARQUET();
    if (!S3Server::IsInstalled()) GTEST_SKIP() << "no S3 server is installed; ./dev test installs one";
    server_ = std::make_unique<S3Server>();
    auto opened = OpenBlobStore(S3Server::Url("exports"), server_->options());
    ASSERT_OK(opened);
    blobs_ = *std::move(opened);
  }

  std::unique_ptr<S3Server> server_;
};

TEST_F(ExportInABucket, IsWrittenOnceAndReadBack) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}}), RowUnitOf("b", "x", {{1, "w"}})});
  ASSERT_OK_AND_ASSIGN(const exports::Manifest made,
                       exports::ExportDataset(source, Request(Shape::kRows), *blobs_, Options("monday")));
  EXPECT_EQ(Lines(made, {"rows"}).size(), 2u);
  ASSERT_OK_AND_ASSIGN(const exports::Manifest again,
                       exports::ExportDataset(source, Request(Shape::kRows), *blobs_, Options("monday")));
  EXPECT_EQ(again, made);
  EXPECT_EQ(Blobs(), BlobsOf(made));
  EXPECT_EQ(*exports::FindExport(*blobs_, "monday"), made);
}

}  // namespace
}  // namespace kvstore
