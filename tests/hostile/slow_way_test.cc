#include <gtest/gtest.h>

#include "kvstore_api/connect.h"
#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
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
  // On a busy machine a handshake may take longer than the deadline, which is what the client says then.
  const auto says = [](const Served& served, ConnectOptions options, const std::string& text) {
    options.deadline_ms = 500;
    return Eventually([&] {
      const absl::Status status = served.Client(options)->ListDatasets().status();
      EXPECT_FALSE(status.ok());
      return absl::IsUnavailable(status) && std::string(status.message()).find(text) != std::string::npos;
    });
  };
  const Served served(options_);
  EXPECT_TRUE(says(served, {.tls = ClientTls{.ca = authority_.file(), .server_name = "other.example"}},
                   "other.example is not in peer certificate"));
  EXPECT_TRUE(says(served, {}, "does it speak TLS only?"));
  const Served plain;
  EXPECT_TRUE(says(plain, {.tls = ClientTls{.ca = authority_.file()}}, "does it speak TLS"));
}

}  // namespace
}  // namespace kvstore::testing
