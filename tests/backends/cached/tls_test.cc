#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "backends/cached/servers/memcached.h"
#include "backends/cached/servers/redis.h"
#include "backends/cached/servers/tls_client.h"
#include "tests/support/cache_server.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::cached {
namespace {

using testing::Authority;
using testing::CacheServer;
using testing::FailsWith;
using ::testing::Values;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

/// Both kinds of servers with TLS, on real ones.
class CacheTlsTest : public ::testing::TestWithParam<CacheServer::Kind> {
 protected:
  CacheServer::Tls ServerFiles(const std::string& client_ca = "", int days = 1) {
    const Authority::Files files = authority_.Issue("cache", days);
    return {.cert = files.cert, .key = files.key, .client_ca = client_ca};
  }
  std::unique_ptr<Server> Open(const CacheServer& process, const std::optional<ClientTls>& tls,
                               const std::string& host = "127.0.0.1") {
    const ServerOptions options{.address = host + ":" + std::to_string(process.port()),
                                .timeout = std::chrono::milliseconds(2000),
                                .user = {},
                                .password = {},
                                .tls = tls ? std::make_shared<TlsClient>(*tls) : nullptr};
    return GetParam() == CacheServer::Kind::kMemcached ? OpenMemcached(options) : OpenRedis(options);
  }
  ClientTls Trusting(const Authority& authority) {
    return {.ca = authority.file(), .cert = {}, .key = {}, .server_name = {}};
  }
  char part() const { return GetParam() == CacheServer::Kind::kMemcached ? 'v' : 'd'; }

  const testing::TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
};

TEST_P(CacheTlsTest, LargeAndSmallValuesGoBothWays) {
  CacheServer process(GetParam(), {}, ServerFiles());
  const auto server = Open(process, Trusting(authority_));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{16} << 10, kMaxValueBytes}) {
    const std::string name = "k" + std::to_string(size);
    const Server::Key key{name, part()};
    const auto looked = server->Look({&key, 1}, true);
    ASSERT_OK(looked);
    const std::string value(size, 'x');
    const Server::Filling filling{.key = key, .lease = looked->keys[0].lease, .value = value};
    EXPECT_OK(server->Fill({&filling, 1}, 60));
    const auto filled = server->Look({&key, 1}, true);
    ASSERT_OK(filled);
    EXPECT_EQ(filled->keys[0].kind, Looked::Kind::kHit) << size;
    EXPECT_EQ(filled->keys[0].value, value);
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST_P(CacheTlsTest, AServerOfAnotherAuthorityIsRefused) {
  CacheServer process(GetParam(), {}, ServerFiles());
  const Authority another(dir_.path(), "another");
  EXPECT_THAT(Open(process, Trusting(another))->Mark("k", 1).status(),
              FailsWith(kUnavailable, process.address() + ": its certificate is refused: unable to get"));
}

TEST_P(CacheTlsTest, AnExpiredCertificateIsRefused) {
  CacheServer process(GetParam(), {}, ServerFiles("", /*days=*/0));
  EXPECT_THAT(Open(process, Trusting(authority_))->Mark("k", 1).status(),
              FailsWith(kUnavailable, "its certificate is refused: certificate has expired"));
}

TEST_P(CacheTlsTest, TheCertificateMustHaveTheNameOfTheServer) {
  CacheServer process(GetParam(), {}, ServerFiles());
  EXPECT_OK(Open(process, Trusting(authority_), "localhost")->Mark("k", 1));
  ClientTls tls = Trusting(authority_);
  tls.server_name = "cache9";
  EXPECT_THAT(Open(process, tls)->Mark("k", 1).status(),
              FailsWith(kUnavailable, "its certificate is refused: hostname mismatch"));
  tls.server_name = "127.0.0.2";
  EXPECT_THAT(Open(process, tls)->Mark("k", 1).status(),
              FailsWith(kUnavailable, "its certificate is refused: IP address mismatch"));
}

TEST_P(CacheTlsTest, ANameThatCannotBeCheckedIsRefused) {
  CacheServer process(GetParam(), {}, ServerFiles());
  ClientTls tls = Trusting(authority_);
  // TLS sends names of at most 255 bytes.
  tls.server_name = std::string(256, 'x');
  EXPECT_THAT(
      Open(process, tls)->Mark("k", 1).status(),
      FailsWith(kUnavailable, "is not a name that a certificate can be checked for; set server_name"));
}

TEST_P(CacheTlsTest, AServerMayAskForTheCertificateOfItsClients) {
  CacheServer process(GetParam(), {}, ServerFiles(authority_.file()));
  EXPECT_THAT(Open(process, Trusting(authority_))->Mark("k", 1).status(),
              FailsWith(kUnavailable, process.address()));
  const Authority::Files own = authority_.Issue("client");
  ClientTls tls = Trusting(authority_);
  tls.cert = own.cert;
  tls.key = own.key;
  EXPECT_OK(Open(process, tls)->Mark("k", 1));
}

TEST_P(CacheTlsTest, ASideWithoutTlsIsRefused) {
  CacheServer plain(GetParam());
  EXPECT_THAT(Open(plain, Trusting(authority_))->Mark("k", 1).status(),
              FailsWith(kUnavailable, plain.address()));
  CacheServer encrypted(GetParam(), {}, ServerFiles());
  EXPECT_THAT(Open(encrypted, std::nullopt)->Mark("k", 1).status(),
              FailsWith(kUnavailable, encrypted.address()));
}

TEST_P(CacheTlsTest, ARestartedServerIsConnectedToAgain) {
  CacheServer process(GetParam(), {}, ServerFiles());
  const auto server = Open(process, Trusting(authority_));
  EXPECT_OK(server->Mark("k", 1));
  process.Stop();
  EXPECT_THAT(server->Mark("k", 1).status(), FailsWith(kUnavailable, process.address()));
  process.Start();
  EXPECT_OK(server->Mark("k", 1));
  process.Stop();
  process.Start();
  EXPECT_OK(server->Mark("k", 1));
  process.Pause();
  EXPECT_THAT(server->Mark("k", 2).status(), FailsWith(kUnavailable, "does not answer in time"));
  process.Continue();
  EXPECT_OK(server->Mark("k", 2));
}

INSTANTIATE_TEST_SUITE_P(Memcached, CacheTlsTest, Values(CacheServer::Kind::kMemcached));
INSTANTIATE_TEST_SUITE_P(Redis, CacheTlsTest, Values(CacheServer::Kind::kRedis));

/// A memcached server with TLS whose guard is "1", and which can be told to answer once more than it is
/// asked.
class TlsParrot {
 public:
  explicit TlsParrot(const Authority::Files& files) {
    SSL_CTX_use_certificate_chain_file(context_.get(), files.cert.c_str());
    SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM);
    const sockaddr_in address = testing::Loopback(port_);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    thread_ = std::thread([this] {
      for (int client = 0; (client = ::accept(listener_, nullptr, nullptr)) >= 0; ::close(client)) {
        ++connections_;
        Serve(client);
      }
    });
  }
  ~TlsParrot() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// How many clients have connected.
  int connections() const { return connections_; }
  /// Answers "2" to nothing, and returns when that has arrived.
  void SayMore() {
    more_ = true;
    EXPECT_TRUE(testing::Eventually([this] { return !more_; }));
  }

 private:
  void Serve(int client) {
    const std::unique_ptr<SSL, void (*)(SSL*)> session(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(session.get(), client);
    if (SSL_accept(session.get()) != 1) return;
    const auto say = [&](const std::string& text) {
      const std::string answer = "VA 1 c1 f1\r\n" + text + "\r\n";
      SSL_write(session.get(), answer.data(), static_cast<int>(answer.size()));
    };
    for (std::array<char, 4096> said{};;) {
      pollfd wait{.fd = client, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, /*timeout=*/5) > 0) {
        if (SSL_read(session.get(), said.data(), said.size()) <= 0) return;
        say("1");
      } else if (more_) {
        say("2");
        // The queue holds the bytes that the other side's system has not acknowledged.
        EXPECT_TRUE(testing::Eventually([&] {
          int queued = 0;
          return ::ioctl(client, SIOCOUTQ, &queued) == 0 && queued == 0;
        }));
        more_ = false;
      }
    }
  }

  const uint16_t port_ = testing::FreePort();
  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{SSL_CTX_new(TLS_server_method()), SSL_CTX_free};
  std::atomic<int> connections_{0};
  std::atomic<bool> more_{false};
  std::thread thread_;
};

TEST(CacheTls, ASecondAnswerIsNotTakenForThatOfTheNextRequest) {
  const testing::TempDir dir;
  Authority authority(dir.path(), "authority");
  TlsParrot parrot(authority.Issue("cache"));
  const ClientTls tls{.ca = authority.file(), .cert = {}, .key = {}, .server_name = {}};
  const auto server = OpenMemcached({.address = parrot.address(),
                                     .timeout = std::chrono::milliseconds(2000),
                                     .user = {},
                                     .password = {},
                                     .tls = std::make_shared<TlsClient>(tls)});
  for (int connection = 1; connection <= 3; ++connection) {
    for (int i = 0; i < 3; ++i) {
      const auto read = server->ReadGuard();
      ASSERT_OK(read);
      EXPECT_EQ(*read, "1") << "the answer that nobody had asked for";
      EXPECT_EQ(parrot.connections(), connection) << "the tickets of TLS 1.3 are no reason to close";
    }
    parrot.SayMore();
  }
}

TEST(TlsClientTest, FilesThatCannotBeUsedAreNamed) {
  const testing::TempDir dir;
  Authority authority(dir.path(), "authority");
  const Authority::Files files = authority.Issue("client");
  const Authority::Files others = authority.Issue("client");
  const auto error = [](const ClientTls& tls) { return TlsClient(tls).Context().status(); };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::string none = (dir.path() / "none.pem").string();
  EXPECT_THAT(error({.ca = none, .cert = {}, .key = {}, .server_name = {}}),
              FailsWith(kInvalid, "tls.ca: cannot use '" + none + "'"));
  EXPECT_THAT(error({.ca = {}, .cert = none, .key = files.key, .server_name = {}}),
              FailsWith(kInvalid, "tls.cert: cannot use '" + none + "'"));
  EXPECT_THAT(error({.ca = {}, .cert = files.cert, .key = others.key, .server_name = {}}),
              FailsWith(kInvalid, "tls.key: cannot use '" + others.key + "': key values mismatch"));
  EXPECT_THAT(error({.ca = {}, .cert = files.cert, .key = {}, .server_name = {}}),
              FailsWith(kInvalid, "cert and key belong together"));
}

TEST(TlsClientTest, FilesAreReadAgainWhenTheyHaveChanged) {
  const testing::TempDir dir;
  const Authority authority(dir.path(), "authority");
  const Authority another(dir.path(), "another");
  const std::string ca = (dir.path() / "ca.pem").string();
  std::filesystem::copy_file(authority.file(), ca);
  TlsClient client({.ca = ca, .cert = {}, .key = {}, .server_name = {}});
  const auto first = client.Context();
  ASSERT_OK(first);
  EXPECT_EQ(*client.Context(), *first);
  std::filesystem::rename(another.file(), ca);
  const auto second = client.Context();
  ASSERT_OK(second);
  EXPECT_NE(*second, *first);
  std::filesystem::remove(ca);
  EXPECT_EQ(client.Context().value_or(nullptr), *second) << "what cannot be read replaces nothing";
}

}  // namespace
}  // namespace kvstore::cached
