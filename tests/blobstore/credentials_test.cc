#include "blobstore/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::s3 {
namespace {

using absl::StatusCode;
using kvstore::testing::FailsWith;
using kvstore::testing::TempDir;

void Write(const std::filesystem::path& file, const std::string& text, mode_t mode = 0600) {
  std::filesystem::remove(file);
  std::ofstream(file) << text;
  ::chmod(file.c_str(), mode);
}

TEST(Credentials, AreReadFromASectionOfAFile) {
  const std::string text =
      "# keys\r\n[other]\naws_access_key_id=NOT\naws_secret_access_key=this\n\n[ backups ]\n"
      "  aws_access_key_id = AKIA1\naws_secret_access_key = a/b+c==\nregion = us-east-1\n; "
      "end\naws_session_token = T\n[last]\n";
  ASSERT_OK_AND_ASSIGN(const Credentials found, ParseCredentials(text, "backups"));
  EXPECT_EQ(found.key_id, "AKIA1");
  EXPECT_EQ(found.secret, "a/b+c==");
  EXPECT_EQ(found.session_token, "T");
}

TEST(Credentials, AMalformedFileIsRefusedByItsLineAndNotItsText) {
  const std::string secret = "TopSecret";
  for (const std::string& text :
       {"[default]\naws_access_key_id=A\naws_secret_access_key " + secret,
        "[default]\n\naws_secret_access_key=" + secret + " x",
        "[default]\n\naws_secret_access_key=" + secret + "\x01" + "x", "[default]\n\n[" + secret}) {
    const auto parsed = ParseCredentials(text, "default");
    EXPECT_THAT(parsed, FailsWith(StatusCode::kInvalidArgument, "line 3"));
    EXPECT_EQ(std::string(parsed.status().message()).find(secret), std::string::npos);
  }
  EXPECT_THAT(ParseCredentials("[default]\naws_access_key_id=A\n", "default"),
              FailsWith(StatusCode::kInvalidArgument, "profile 'default' has no"));
  EXPECT_THAT(ParseCredentials("", "x"), FailsWith(StatusCode::kInvalidArgument, "profile 'x' has no"));
}

TEST(Credentials, AFileThatOthersCanUseIsRefused) {
  const TempDir dir;
  const auto file = dir / "keys";
  for (const mode_t mode : {0640, 0604, 0620, 0610}) {
    Write(file, "[default]\naws_access_key_id=A\naws_secret_access_key=B\n", mode);
    EXPECT_THAT(CredentialSource(file, "default").Current(),
                FailsWith(StatusCode::kFailedPrecondition, "chmod 600"));
  }
  Write(file, "[default]\naws_access_key_id=A\naws_secret_access_key=B\n", 0400);
  EXPECT_OK(CredentialSource(file, "default").Current());
}

TEST(Credentials, AFileIsReadAgainWhenItHasChanged) {
  const TempDir dir;
  const auto file = dir / "keys";
  Write(file, "[default]\naws_access_key_id=A\naws_secret_access_key=B\n");
  CredentialSource source(file, "default");
  ASSERT_OK_AND_ASSIGN(const Credentials before, source.Current());
  EXPECT_EQ(before.key_id, "A");
  Write(dir / "new", "[default]\naws_access_key_id=C\naws_secret_access_key=D\n");
  std::filesystem::rename(dir / "new", file);
  ASSERT_OK_AND_ASSIGN(const Credentials after, source.Current());
  EXPECT_EQ(after.key_id, "C");
  std::filesystem::remove(file);
  EXPECT_THAT(source.Current(), FailsWith(StatusCode::kNotFound, "credentials"));
}

TEST(Credentials, AFolderOrAPipeIsNoFile) {
  const TempDir dir;
  ::chmod(dir.path().c_str(), 0700);
  EXPECT_THAT(CredentialSource(dir.path(), "default").Current(),
              FailsWith(StatusCode::kFailedPrecondition, "is not a file"));
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(CredentialSource(dir / "pipe", "default").Current(),
              FailsWith(StatusCode::kFailedPrecondition, "is not a file"));
}

}  // namespace
}  // namespace kvstore::s3
