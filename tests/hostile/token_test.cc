#include "client/token.h"

#include <gtest/gtest.h>

#include "kvstore_api/connect.h"
#include "tests/support/status_matchers.h"

/// Tests of what a token may be, and where it may be sent.
namespace kvstore {
namespace {

using client::TokenFor;
using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const std::string kHere = "127.0.0.1:7400";
const std::string kElsewhere = "kv.example.com:7400";

TEST(Token, AByteOrderMarkIsNoPartOfIt) {
  ASSERT_OK_AND_ASSIGN(const std::string token, TokenFor(kHere, {.token = "\xEF\xBB\xBFkv_secret"}));
  EXPECT_EQ(token, "kv_secret");
  ASSERT_OK_AND_ASSIGN(const std::string none, TokenFor(kHere, {}));
  EXPECT_EQ(none, "");
}

TEST(Token, WhatIsNotPrintableIsRefusedAndNotQuoted) {
  for (const char* token : {"kv_ab\x01secret", "secret\r", "secret\n",
                            "s\xC3\xA9"
                            "cret",
                            "\x7Fsecret", "\xEF\xBB\xBF\xEF\xBB\xBFsecret"}) {
    const absl::Status status = Connect(kHere, {.token = token}).status();
    EXPECT_THAT(status, FailsWith(kInvalid, "not a printable ASCII character"));
    EXPECT_EQ(std::string(status.message()).find("secret"), std::string::npos) << status;
  }
  EXPECT_THAT(Connect(kHere, {.backend = "we\x01st"}).status(), FailsWith(kInvalid, "backend: byte 3"));
}

TEST(Token, LeavesThisMachineOnlyEncryptedOrWhenItIsSaidSo) {
  const std::string secret = "kv_secret";
  const absl::Status status = Connect(kElsewhere, {.token = secret}).status();
  EXPECT_THAT(status, FailsWith(kInvalid, "is not encrypted"));
  EXPECT_EQ(std::string(status.message()).find(secret), std::string::npos) << status;
  // A name that is resolved may be any machine.
  EXPECT_FALSE(Connect("dns:///localhost:7400", {.token = secret}).ok());
  EXPECT_OK(Connect(kElsewhere, {.token = secret, .tls = ClientTls{}}).status());
  EXPECT_OK(Connect(kElsewhere, {.token = secret, .plain_token = true}).status());
  EXPECT_OK(Connect(kElsewhere, {}).status());
  for (const char* here : {"127.0.0.1:7400", "[::1]:7400", "localhost:7400", "unix:/run/kv"}) {
    EXPECT_OK(Connect(here, {.token = secret}).status()) << here;
  }
}

}  // namespace
}  // namespace kvstore
