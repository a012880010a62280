#include <gtest/gtest.h>

#include "client/connect.h"
#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// A network that takes its time, or somebody in it who holds packets back.
namespace kvstore::testing {
namespace {

class SlowWay : public ::testing::Test {
 protected:
  SlowWay() {
    options_ = TestServerOptions();
    const Authority::Files files = authority_.Issue("server");
    options_.tls.cert = files.cert;
    options_.tls.key = files.key;
  }

  const TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
  ServerOptions options_;
};

TEST_F(SlowWay, ATlsHandshakeMayTakeSeveralWaysThereAndBack) {
  const Served served(options_);
  TcpProxy proxy(served.port());
  proxy.Delay(60);
  const auto store = *Connect(proxy.address(), {.tls = ClientTls{.ca = authority_.file()}});
  EXPECT_OK(store->ListDatasets().status());
}

}  // namespace
}  // namespace kvstore::testing
