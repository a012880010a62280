#include "server/address.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace kvstore::server {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

ServerOptions Listening(const std::string& address) {
  ServerOptions options;
  options.listen = {address};
  return options;
}

TEST(Address, BeyondThisMachineThereMustBeTlsAndTokens) {
  EXPECT_OK(CheckAddresses(ServerOptions()));
  EXPECT_THAT(CheckAddresses(Listening("0.0.0.0:7400")), FailsWith(kInvalid, "give server.tls"));
  EXPECT_THAT(CheckAddresses(Listening("0.0.0.0:7400")), FailsWith(kInvalid, "give server.tokens"));
  ServerOptions options = Listening("0.0.0.0:7400");
  options.tls.cert = "cert.pem";
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.tokens"));
  options.tokens = "tokens.json";
  EXPECT_OK(CheckAddresses(options));
  options.tokens.clear();
  options.tls.client_ca = "ca.pem";
  EXPECT_OK(CheckAddresses(options));
  options = Listening("0.0.0.0:7400");
  options.insecure = true;
  EXPECT_OK(CheckAddresses(options));
}

TEST(Address, FiguresInPlainTextAreShownBeyondThisMachineOnlyIfAsked) {
  ServerOptions options;
  options.http = "0.0.0.0:7401";
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "http_open"));
  options.http_open = true;
  EXPECT_OK(CheckAddresses(options));
}

TEST(Address, TheRedisProtocolIsProtectedAsTheRestIs) {
  ServerOptions options;
  options.resp = "0.0.0.0:6379";
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.resp: '0.0.0.0:6379' can be reached"));
  options.tls.cert = "cert.pem";
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "give server.tokens"));
  options.tokens = "tokens.json";
  EXPECT_OK(CheckAddresses(options));
  options.resp = "unix:/run/redis";
  EXPECT_OK(CheckAddresses(options));
}

TEST(Address, TheHttpApiNeedsWhatTheOtherAddressesNeed) {
  ServerOptions options;
  options.http_api = "127.0.0.1:7402";
  EXPECT_OK(CheckAddresses(options));
  options.http_api = "0.0.0.0:7402";
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.http_api: '0.0.0.0:7402' can be reached"));
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "give server.tls"));
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "give server.tokens"));
  // http_open opens only the pages for monitoring, so http_api is refused as before.
  options.http_open = true;
  EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.http_api"));
  options.tls.cert = "cert.pem";
  options.tokens = "tokens.json";
  EXPECT_OK(CheckAddresses(options));
  options = ServerOptions();
  options.http_api = "0.0.0.0:7402";
  options.insecure = true;
  EXPECT_OK(CheckAddresses(options));
  for (const char* none : {"7402", "unix:/run/kv", "host:port"}) {
    options.http_api = none;
    EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.http_api")) << none;
  }
}

TEST(Address, AnOriginIsWhatBrowsersSend) {
  ServerOptions options;
  options.http_origins = {"https://app.example", "http://localhost:3000", "*"};
  EXPECT_OK(CheckAddresses(options));
  for (const char* none :
       {"", "app.example", "https://", "https://app.example/", "https://a b", "null", "ftp://x"}) {
    options.http_origins = {"*", none};
    EXPECT_THAT(CheckAddresses(options), FailsWith(kInvalid, "server.http_origins[1]")) << none;
  }
}

TEST(Address, EveryMistakeIsNamed) {
  ServerOptions options;
  options.listen = {"7400", "host:port", "unix:", "::1:7400", "host:70000"};
  options.http = "unix:/run/kv";
  options.resp = "6379";
  const std::string text(CheckAddresses(options).message());
  for (int i = 0; i < 5; ++i)
    EXPECT_NE(text.find("server.listen[" + std::to_string(i) + "]"), std::string::npos) << text;
  EXPECT_NE(text.find("server.http"), std::string::npos);
  EXPECT_NE(text.find("server.resp: '6379' is not an address"), std::string::npos) << text;
  EXPECT_NE(text.find("server.listen[4]: the port of 'host:70000' is greater than 65535"), std::string::npos)
      << text;
  EXPECT_NE(text.find("server.listen[1]: 'host:port' is not an address"), std::string::npos) << text;
  EXPECT_NE(text.find("server.listen[3]: '::1:7400' is not an address"), std::string::npos) << text;
}

}  // namespace
}  // namespace kvstore::server
