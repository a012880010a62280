#include <gtest/gtest.h>

#include "kvstore_api/connect.h"
#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// A slow network, or somebody in it who delays packets.
namespace kvstore::testing {
namespace {

class SlowNetworkTest : public ::testing::Test {
 protected:
  SlowNetworkTest() {
    options_ = TestServerOptions();
    const Authority::Files files = authority_.Issue("server");
    options_.tls.cert = files.cert;
    options_.tls.key = files.key;
  }

  const TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
  ServerOptions options_;
};

TEST_F(SlowNetworkTest, ATlsHandshakeMayTakeSeveralWaysThereAndBack) {
  const Served served(options_);
  TcpProxy proxy(served.port());
  proxy.Delay(60);
  const auto store = *Connect(proxy.address(), {.tls = ClientTls{.ca = authority_.file()}});
  EXPECT_OK(store->ListDatasets().status());
}

TEST_F(SlowNetworkTest, WhatMayBeWrongWithATlsConnectionIsSaid) {
  const Served served(options_);
  const auto list = [&](const ConnectOptions& options) {
    return served.Client(options)->ListDatasets().status();
  };
  const auto code = absl::StatusCode::kUnavailable;
  EXPECT_THAT(
      list({.tls = ClientTls{.ca = authority_.file(), .server_name = "other.example"}, .deadline_ms = 500}),
      FailsWith(code, "other.example is not in peer certificate"));
  EXPECT_THAT(list({.deadline_ms = 500}), FailsWith(code, "does it speak TLS only?"));
  const Served plain;
  EXPECT_THAT(
      plain.Client({.tls = ClientTls{.ca = authority_.file()}, .deadline_ms = 500})->ListDatasets().status(),
      FailsWith(code, "does it speak TLS"));
}

}  // namespace
}  // namespace kvstore::testing
