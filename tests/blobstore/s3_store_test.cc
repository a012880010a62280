#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/shift_clock.h"
#include "blobstore/open_blob_store.h"
#include "tests/blobstore/blob_suite.h"
#include "tests/blobstore/s3_server.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The store in a bucket of a real server, which verifies signatures. Skipped where ./dev could install none.
namespace kvstore {
namespace {

using absl::StatusCode;
using testing::BlobSuite;
using testing::FailsWith;
using testing::S3Server;

/// The server that the tests share.
S3Server& Server() {
  static S3Server server;
  return server;
}

std::unique_ptr<BlobStore> MustOpen(const std::string& prefix, const S3Options& options) {
  auto store = OpenBlobStore(S3Server::Url(prefix), options);
  EXPECT_OK(store);
  return store.ok() ? *std::move(store) : nullptr;
}

testing::BlobStoreKind Buckets() {
  return {.name = "s3",
          .open = [](const std::string& prefix) { return MustOpen(prefix, Server().options()); },
          .keeps_checksums = true};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BlobSuite);
INSTANTIATE_TEST_SUITE_P(S3, BlobSuite,
                         ::testing::ValuesIn(S3Server::IsInstalled() ? std::vector{Buckets()}
                                                                     : std::vector<testing::BlobStoreKind>()),
                         [](const auto&) { return "s3"; });

class S3StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!S3Server::IsInstalled()) GTEST_SKIP() << "no S3 server is installed; ./dev test installs one";
  }
};

TEST_F(S3StoreTest, AWrongKeyIsOneClearLine) {
  S3Options options = Server().options();
  options.credentials_file = Server().CredentialsFile("unknown", "AKIDOFNOBODY", "x");
  EXPECT_THAT(MustOpen("k", options)->Put("a", "x", PutMode::kReplace),
              FailsWith(StatusCode::kUnauthenticated, "does not know the access key"));
  // A HEAD has no body to say so.
  EXPECT_THAT(MustOpen("k", options)->Stat("a"),
              FailsWith(StatusCode::kUnauthenticated, "does not know the access key"));
}

TEST_F(S3StoreTest, AWrongSecretIsOneClearLineWithoutIt) {
  if (!S3Server::IsVersity()) GTEST_SKIP() << "moto makes the keys";
  S3Options options = Server().options();
  options.credentials_file = Server().CredentialsFile("wrong", Server().key_id(), "TheWrongSecret");
  const auto put = MustOpen("k", options)->Put("a", "x", PutMode::kReplace);
  EXPECT_THAT(put, FailsWith(StatusCode::kUnauthenticated, "the secret is not the one"));
  EXPECT_EQ(put.status().ToString().find("TheWrongSecret"), std::string::npos);
}

TEST_F(S3StoreTest, ABucketThatDoesNotExistIsOneClearLine) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenBlobStore("s3://no-such-bucket/p", Server().options()));
  const auto missing = FailsWith(StatusCode::kFailedPrecondition, "the bucket no-such-bucket does not exist");
  EXPECT_THAT(store->Put("a", "x", PutMode::kIfAbsent), missing);
  EXPECT_THAT(store->Get("a", 10), missing);
  EXPECT_THAT(store->Stat("a"), missing);
  EXPECT_THAT(store->List("", "", 10), missing);
}

TEST_F(S3StoreTest, AClockThatIsWrongIsSaidWithTheDifference) {
  if (!S3Server::IsVersity()) GTEST_SKIP() << "moto does not look at dates";
  const auto store = MustOpen("clock", Server().options());
  ShiftWallClock(-3 * 3600 * 1000 - 60'000);
  const auto behind = store->Put("a", "x", PutMode::kReplace);
  ShiftWallClock(5 * 3600 * 1000 + 60'000);
  const auto ahead = store->Stat("a");
  ShiftWallClock(0);
  EXPECT_THAT(behind, FailsWith(StatusCode::kFailedPrecondition, "clock is 3 h"));
  EXPECT_THAT(behind, FailsWith(StatusCode::kFailedPrecondition, "behind"));
  EXPECT_THAT(ahead, FailsWith(StatusCode::kFailedPrecondition, "clock is 5 h"));
  EXPECT_THAT(ahead, FailsWith(StatusCode::kFailedPrecondition, "ahead of"));
}

TEST_F(S3StoreTest, CertificatesAreVerified) {
  if (!S3Server::IsVersity()) GTEST_SKIP() << "moto has no TLS";
  const testing::TempDir dir;
  testing::Authority ours(dir.path(), "ours");
  testing::Authority other(dir.path(), "other");
  const auto files = ours.Issue("localhost");
  const S3Server server(&files);
  S3Options options = server.options();
  options.ca_file = ours.file();
  EXPECT_OK(MustOpen("tls", options)->Put("a", "x", PutMode::kIfAbsent));
  // These would wait for minutes if they were tried again.
  options.retry_for_ms = 600'000;
  options.ca_file = other.file();
  EXPECT_THAT(MustOpen("tls", options)->Get("a", 10), FailsWith(StatusCode::kUnavailable, "certificate"));
  options.ca_file = "";
  EXPECT_THAT(MustOpen("tls", options)->Get("a", 10), FailsWith(StatusCode::kUnavailable, "certificate"));
}

TEST_F(S3StoreTest, AnExpiredCertificateIsRefused) {
  if (!S3Server::IsVersity()) GTEST_SKIP() << "moto has no TLS";
  const testing::TempDir dir;
  testing::Authority authority(dir.path(), "ours");
  const auto files = authority.Issue("localhost", 0);
  const S3Server server(&files);
  S3Options options = server.options();
  options.ca_file = authority.file();
  options.retry_for_ms = 600'000;
  EXPECT_THAT(MustOpen("tls", options)->Get("a", 10), FailsWith(StatusCode::kUnavailable, "certificate"));
}

TEST(S3Store, WithoutCredentialsItIsNotOpened) {
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    ::unsetenv(name);
  EXPECT_THAT(OpenBlobStore("s3://bucket"), FailsWith(StatusCode::kFailedPrecondition, "AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(OpenBlobStore("s3://bucket", {.credentials_file = "/no/such/file"}),
              FailsWith(StatusCode::kNotFound, "/no/such/file"));
  ::setenv("AWS_ACCESS_KEY_ID", "A", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "B", 1);
  EXPECT_OK(OpenBlobStore("s3://bucket"));
  ::setenv("AWS_SESSION_TOKEN", "a\r\nx-amz-acl: public-read", 1);
  EXPECT_THAT(OpenBlobStore("s3://bucket"), FailsWith(StatusCode::kInvalidArgument, "AWS_SESSION_TOKEN"));
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace kvstore
