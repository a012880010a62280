#include "server/tls/certificates.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/check_options.h"
#include "server/tls/common_name.h"
#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using server::Certificates;
using testing::Authority;
using testing::Eventually;
using testing::Served;

/// A connection over TLS to a port of this machine.
class Handshake {
 public:
  /// own  Says who the client is; empty: nothing does.
  Handshake(uint16_t port, const std::string& ca, const Authority::Files& own) {
    SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!own.cert.empty()) {
      SSL_CTX_use_certificate_file(context_.get(), own.cert.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), own.key.c_str(), SSL_FILETYPE_PEM);
    }
    const sockaddr_in server = testing::Loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), 0);
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls_.get(), kHttp2, sizeof(kHttp2));
    SSL_set_fd(tls_.get(), socket_);
    is_trusted_ = SSL_connect(tls_.get()) == 1;
  }
  ~Handshake() { ::close(socket_); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Returns whom the server says to be; empty if it is not trusted.
  std::string ServerName() const { return is_trusted_ ? server::CommonNameOf(tls_.get()) : ""; }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free};
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls_{SSL_new(context_.get()), &SSL_free};
  bool is_trusted_ = false;
};

class CertificatesTest : public ::testing::Test {
 protected:
  /// Puts a file in the place of another one, as tools that renew certificates do.
  void Replace(const std::string& file, const std::filesystem::path& by) const {
    std::filesystem::copy_file(by, dir_ / "next", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(dir_ / "next", dir_ / file);
  }
  void Use(const Authority::Files& files) const {
    Replace("cert.pem", files.cert);
    Replace("key.pem", files.key);
  }
  std::string NameAt(uint16_t port, const Authority& authority, const Authority::Files& own = {}) const {
    return Handshake(port, authority.file(), own).ServerName();
  }
  ServerTls Files() const { return {.cert = dir_ / "cert.pem", .key = dir_ / "key.pem", .client_ca = ""}; }

  const testing::TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
};

/// A server with all of its doors, over TLS.
class ServedCertificatesTest : public CertificatesTest {
 protected:
  void Serve(const ServerTls& tls) {
    ServerOptions options = testing::TestServerOptions();
    options.tls = tls;
    options.resp = "127.0.0.1:0";
    options.http_api = "127.0.0.1:0";
    served_ = std::make_unique<Served>(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "rows"}));
    const std::string resp = served_->server().resp_address();
    ports_ = {served_->port(), static_cast<uint16_t>(std::stoi(resp.substr(resp.rfind(':') + 1))),
              static_cast<uint16_t>(served_->server().http_api_port())};
  }

  std::unique_ptr<Served> served_;
  std::vector<uint16_t> ports_;
};

TEST_F(ServedCertificatesTest, EachDoorHasTheNewCertificateAndOpenConnectionsGoOn) {
  Use(authority_.Issue("first"));
  Serve(Files());
  for (const uint16_t port : ports_) EXPECT_EQ(NameAt(port, authority_), "first");
  const auto client = served_->Client({.tls = ClientTls{.ca = authority_.file()}});
  EXPECT_OK(client->GetRow("rows", "r", {}).status());
  Authority next(dir_.path(), "next-authority");
  Use(next.Issue("second", /*days=*/3));
  for (const uint16_t port : ports_) {
    EXPECT_TRUE(Eventually([&] { return NameAt(port, next) == "second"; }));
    EXPECT_EQ(NameAt(port, authority_), "") << "it is no longer of this authority";
  }
  EXPECT_OK(client->GetRow("rows", "r", {}).status());
  EXPECT_OK(served_->Client({.tls = ClientTls{.ca = next.file()}})->GetRow("rows", "r", {}).status());
  // And again, several times.
  for (const std::string name : {"third", "fourth"}) {
    Use(next.Issue(name));
    for (const uint16_t port : ports_) EXPECT_TRUE(Eventually([&] { return NameAt(port, next) == name; }));
  }
}

TEST_F(ServedCertificatesTest, ClientsNeedACertificateOfTheNewAuthority) {
  Use(authority_.Issue("server"));
  Replace("clients.pem", authority_.file());
  ServerTls tls = Files();
  tls.client_ca = dir_ / "clients.pem";
  Serve(tls);
  Authority next(dir_.path(), "next-authority");
  const Authority::Files before = authority_.Issue("client");
  const Authority::Files after = next.Issue("client");
  const auto get = [&](const Authority::Files& own) {
    return served_
        ->Client(
            {.tls = ClientTls{.ca = authority_.file(), .cert = own.cert, .key = own.key}, .deadline_ms = 500})
        ->GetRow("rows", "r", {})
        .status();
  };
  // A handshake on a busy machine may take longer than the call.
  EXPECT_TRUE(Eventually([&] { return get(before).ok(); }));
  EXPECT_FALSE(get(after).ok());
  Replace("clients.pem", next.file());
  EXPECT_TRUE(Eventually([&] { return get(after).ok(); }));
  EXPECT_TRUE(Eventually([&] { return !get(before).ok(); }));
  EXPECT_FALSE(get({}).ok());
}

TEST_F(CertificatesTest, FilesThatCannotBeUsedAreRefused) {
  const Authority::Files first = authority_.Issue("first");
  Use(first);
  ASSERT_OK_AND_ASSIGN(const auto certificates, Certificates::Open(Files()));
  const auto context = certificates->context();
  const auto refuses = [&] {
    certificates->Refresh();
    certificates->Refresh();
    return certificates->context() == context;
  };
  EXPECT_TRUE(refuses()) << "nothing has changed";
  const Authority::Files second = authority_.Issue("second");
  Replace("cert.pem", second.cert);
  EXPECT_TRUE(refuses()) << "the key is another one's";
  std::filesystem::remove(dir_ / "key.pem");
  EXPECT_TRUE(refuses());
  Replace("key.pem", second.cert);
  EXPECT_TRUE(refuses()) << "no key";
  std::filesystem::resize_file(dir_ / "cert.pem", 100);
  EXPECT_TRUE(refuses()) << "half a certificate";
  Use(second);
  EXPECT_FALSE(refuses());
}

TEST_F(CertificatesTest, WhatIsReadSaysWhenItExpires) {
  Use(authority_.Issue("first", /*days=*/1));
  ASSERT_OK_AND_ASSIGN(const auto certificates, Certificates::Open(Files()));
  const auto first = certificates->expires();
  Use(authority_.Issue("second", /*days=*/5));
  certificates->Refresh();
  const auto longer = certificates->expires() - first;
  EXPECT_GT(longer, std::chrono::hours(95));
  EXPECT_LT(longer, std::chrono::hours(97));
}

TEST_F(CertificatesTest, ACheckOfTheOptionsFindsWhatAServerWouldRefuse) {
  ServerOptions options;
  options.tls = {
      .cert = authority_.Issue("one").cert, .key = authority_.Issue("another").key, .client_ca = ""};
  EXPECT_THAT(server::CheckOptions(options),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.key: cannot use"));
  Use(authority_.Issue("one"));
  options.tls = Files();
  EXPECT_OK(server::CheckOptions(options));
}

TEST_F(CertificatesTest, AnAuthorityWithoutACertificateIsRefused) {
  Use(authority_.Issue("server"));
  ServerTls tls = Files();
  tls.client_ca = dir_ / "clients.pem";
  const auto error = [&] { return Certificates::Open(tls).status(); };
  for (const char* none : {"", "\n", "# no certificate\n"}) {
    std::ofstream(tls.client_ca) << none;
    EXPECT_THAT(error(), testing::FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.client_ca: "))
        << none;
  }
  std::filesystem::copy_file(authority_.file(), tls.client_ca,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_OK_AND_ASSIGN(const auto certificates, Certificates::Open(tls));
  const auto context = certificates->context();
  std::ofstream(tls.client_ca) << "";
  certificates->Refresh();
  EXPECT_EQ(certificates->context(), context) << "that of before stays in force";
}

TEST_F(CertificatesTest, AFileThatCannotBeUsedIsNamed) {
  const auto error = [&] { return Certificates::Open(Files()).status(); };
  EXPECT_THAT(error(),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.cert: cannot read"));
  Use(authority_.Issue("first"));
  Replace("key.pem", authority_.Issue("second").key);
  EXPECT_THAT(error(), testing::FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.key: cannot use"));
  Replace("key.pem", dir_ / "cert.pem");
  EXPECT_THAT(error(), testing::FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.key: cannot use"));
}

}  // namespace
}  // namespace kvstore
