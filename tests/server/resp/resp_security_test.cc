#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "server/call/access.h"
#include "server/resp/commands/table.h"
#include "tests/hostile/connection.h"
#include "tests/server/resp/resp_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"

/// Tests who may do what over the Redis protocol.
namespace kvstore::testing {
namespace {

using server::Right;
using server::resp::AllCommands;
using server::resp::Command;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RespSecurityTest : public RespTest {
 protected:
  void SetUp() override {}

  /// Writes a file in which each caller's token is "t-NAME".
  void WriteTokens(const std::map<std::string, std::string>& rights) {
    std::ofstream out(dir_ / "tokens.json");
    out << R"({"tokens": [)";
    const char* comma = "";
    for (const auto& [name, right] : rights) {
      out << comma << R"({"name": ")" << name << R"(", "sha256": ")" << server::TokenDigest("t-" + name)
          << R"(", "rights": )" << right << "}";
      comma = ", ";
    }
    out << "]}";
  }
  ServerOptions WithTokens() {
    WriteTokens({{"reader", R"({"rows": "read", "docs": "read", "links": "read"})"},
                 {"writer", R"({"rows": "write", "docs": "write", "links": "write"})"},
                 {"nobody", "{}"},
                 {"partly", R"({"rows": "read"})"}});
    ServerOptions options = RespOptions();
    options.tokens = dir_ / "tokens.json";
    return options;
  }
  std::unique_ptr<RespClient> As(const std::string& name) {
    auto client = std::make_unique<RespClient>(address());
    EXPECT_EQ(client->Do("AUTH t-" + name), "OK");
    return client;
  }

  const TempDir dir_;
};

/// Returns words with which a command reaches the store, if its caller may.
std::vector<std::string> WordsFor(const Command& command) {
  static const std::map<std::string_view, std::vector<std::string>> kWords = {
      {"get", {"rows:r"}},
      {"getdel", {"rows:r"}},
      {"set", {"rows:r", "v"}},
      {"setnx", {"rows:r", "v"}},
      {"strlen", {"rows:r"}},
      {"mget", {"rows:r", "rows:s"}},
      {"mset", {"rows:r", "v"}},
      {"incr", {"rows:n"}},
      {"decr", {"rows:n"}},
      {"incrby", {"rows:n", "2"}},
      {"decrby", {"rows:n", "2"}},
      {"hincrby", {"rows:h", "n", "2"}},
      {"hset", {"rows:r", "f", "v"}},
      {"hmset", {"rows:r", "f", "v"}},
      {"hsetnx", {"rows:r", "f", "v"}},
      {"hget", {"rows:r", "f"}},
      {"hmget", {"rows:r", "f"}},
      {"hgetall", {"rows:r"}},
      {"hkeys", {"rows:r"}},
      {"hvals", {"rows:r"}},
      {"hlen", {"rows:r"}},
      {"hexists", {"rows:r", "f"}},
      {"hstrlen", {"rows:r", "f"}},
      {"hdel", {"rows:r", "f"}},
      {"hscan", {"rows:r", "0"}},
      {"xadd", {"rows:r:c", "*", "v", "x"}},
      {"xrange", {"rows:r:c", "-", "+"}},
      {"xrevrange", {"rows:r:c", "+", "-"}},
      {"xlen", {"rows:r:c"}},
      {"xdel", {"rows:r:c", "1"}},
      {"zadd", {"links:1", "1", "1"}},
      {"zrem", {"links:1", "1"}},
      {"zcard", {"links:1"}},
      {"zscore", {"links:1", "1"}},
      {"zrange", {"links:1", "0", "-1"}},
      {"zrevrange", {"links:1", "0", "-1"}},
      {"zrangebyscore", {"links:1", "0", "1"}},
      {"zrevrangebyscore", {"links:1", "1", "0"}},
      {"zscan", {"links:1", "0"}},
      {"json.get", {"docs:68719476737"}},
      {"json.mget", {"docs:68719476737", "$"}},
      {"json.set", {"docs:68719476737", "$", "{}", "XX"}},
      {"json.merge", {"docs:68719476737", "$", "{}"}},
      {"json.del", {"docs:68719476737"}},
      {"kv.create", {"docs", "{}"}},
      {"kv.get", {"rows", "r"}},
      {"kv.put", {"rows", "r", "1", "c", "*", "v"}},
      {"kv.scan", {"rows"}},
      {"kv.list", {"links", "1"}},
      {"del", {"rows:r"}},
      {"unlink", {"rows:r"}},
      {"exists", {"rows:r"}},
      {"type", {"rows:r"}},
  };
  std::vector<std::string> words = {std::string(command.name)};
  const auto found = kWords.find(command.name);
  if (found != kWords.end()) words.insert(words.end(), found->second.begin(), found->second.end());
  return words;
}

TEST_F(RespSecurityTest, EachCommandNeedsTheRightOfItsOperation) {
  Serve(WithTokens());
  const auto nobody = As("nobody");
  const auto reader = As("reader");
  const auto writer = As("writer");
  int checked = 0;
  for (const Command* command : AllCommands()) {
    const Right right = server::Traits(command->operation).right;
    if (command->dataset != server::resp::DatasetIn::kKey &&
        command->dataset != server::resp::DatasetIn::kArgument)
      continue;
    const auto words = WordsFor(*command);
    ASSERT_GT(words.size(), 1u) << "the test knows no arguments for " << command->name;
    ++checked;
    EXPECT_THAT(nobody->Do(words), StartsWith("-NOPERM 'nobody' lacks the right to ")) << command->name;
    const std::string answer = reader->Do(words);
    if (right == Right::kRead) {
      EXPECT_THAT(answer, Not(StartsWith("-NOPERM"))) << command->name;
    } else {
      EXPECT_THAT(answer, StartsWith("-NOPERM 'reader' lacks the right to write")) << command->name;
    }
    EXPECT_THAT(writer->Do(words), Not(StartsWith("-NO"))) << command->name;
  }
  EXPECT_GT(checked, 50);
}

TEST_F(RespSecurityTest, EachKeyOfACommandNeedsTheRight) {
  Serve(WithTokens());
  const auto partly = As("partly");
  EXPECT_EQ(partly->Do("EXISTS rows:a"), "(0)");
  EXPECT_THAT(partly->Do("EXISTS rows:a links:1"), StartsWith("-NOPERM"));
  EXPECT_THAT(partly->Do("MGET rows:a links:1"), StartsWith("-NOPERM"));
  const auto writer = As("writer");
  ASSERT_OK(served_->router().CreateDataset({.name = "secret"}));
  EXPECT_THAT(writer->Do("MSET rows:a 1 secret:b 2"), StartsWith("-NOPERM"));
  EXPECT_THAT(writer->Do("DEL rows:a secret:b"), StartsWith("-NOPERM"));
  EXPECT_EQ(writer->Do("GET rows:a"), "nil") << "nothing was done";
}

TEST_F(RespSecurityTest, ListsShowWhatTheCallerMayRead) {
  Serve(WithTokens());
  const auto writer = As("writer");
  writer->Do("SET rows:k v");
  writer->Do("ZADD links:1 1 1");
  const std::string id = writer->Do("KV.CREATE docs {}");
  const std::string number = id.substr(1, id.size() - 2);
  writer->Do("ZADD links:2 1 " + number);
  const auto partly = As("partly");
  EXPECT_THAT(partly->Do("KV.DATASETS"), AllOf(HasSubstr("rows"), Not(HasSubstr("links"))));
  EXPECT_EQ(partly->Do("SCAN 0 COUNT 1000"), R"(["0", ["rows:k"]])");
  EXPECT_EQ(partly->Do("SCAN 0 MATCH links:*"), R"(["0", []])");
  const auto nobody = As("nobody");
  EXPECT_EQ(nobody->Do("SCAN 0"), R"(["0", []])");
  EXPECT_EQ(nobody->Do("KV.DATASETS"), "[]");
  EXPECT_EQ(nobody->Do("DBSIZE"), "(0)");
  WriteTokens({{"joiner", R"({"links": "read"})"}});
  ASSERT_TRUE(Eventually([&] { return RespClient(address()).Do("AUTH t-joiner") == "OK"; }));
  EXPECT_THAT(As("joiner")->Do("KV.LIST links 2"), HasSubstr("-NOPERM the caller lacks the right"));
}

TEST_F(RespSecurityTest, AStrangerGetsNoFurtherThanAuth) {
  Serve(WithTokens());
  for (const char* command : {"PING", "GET rows:k", "INFO", "COMMAND", "CLIENT ID", "SELECT 0", "SCAN 0",
                              "DBSIZE", "ECHO x", "KV.DATASETS"})
    EXPECT_EQ(Do(command), "-NOAUTH Authentication required.") << command;
  EXPECT_THAT(Do("HELLO 3"), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_THAT(Do("AUTH wrong"), StartsWith("-WRONGPASS "));
  EXPECT_THAT(Do("AUTH reader wrong"), StartsWith("-WRONGPASS "));
  EXPECT_THAT(Do("AUTH writer t-reader"), StartsWith("-WRONGPASS ")) << "the token is another caller's";
  EXPECT_THAT(Do("HELLO 3 AUTH reader wrong"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(Do("PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(Do("AUTH reader t-reader"), "OK");
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_THAT(Do("CLIENT INFO"), HasSubstr("user=reader"));
  EXPECT_THAT(Do("AUTH wrong"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(Do("PING"), "PONG") << "an AUTH that fails changes nothing";
  EXPECT_EQ(Do("AUTH default t-writer"), "OK");
  EXPECT_EQ(Do("SET rows:k v"), "OK");
  RespClient other(address());
  EXPECT_THAT(other.Do("HELLO 3 AUTH writer t-writer SETNAME me"), StartsWith("{"));
  EXPECT_EQ(other.Do("QUIT"), "OK");
}

TEST_F(RespSecurityTest, AStrangerCanSendLittle) {
  Serve(WithTokens());
  client_->Send("*3\r\n$4\r\nAUTH\r\n$5000\r\n");
  EXPECT_THAT(client_->Receive(), StartsWith("-ERR Protocol error: invalid bulk length"));
  EXPECT_TRUE(client_->IsClosed());
  RespClient many(address());
  many.Send("*11\r\n");
  EXPECT_THAT(many.Receive(), StartsWith("-ERR Protocol error: invalid multibulk length"));
  RespClient often(address());
  size_t answered = 0;
  while (answered < 100'000 && often.Send("PING\r\n") && often.Receive() != RespClient::kClosed) ++answered;
  EXPECT_EQ(answered, (64 << 10) / 6) << "everything but 64 KiB is refused";
}

TEST_F(RespSecurityTest, AWithdrawnTokenEndsWhatItsConnectionsMayDo) {
  Serve(WithTokens());
  const auto reader = As("reader");
  EXPECT_EQ(reader->Do("GET rows:k"), "nil");
  WriteTokens({{"writer", R"({"rows": "write"})"}});
  EXPECT_TRUE(Eventually([&] { return reader->Do("GET rows:k") == "-NOAUTH Authentication required."; }));
  EXPECT_EQ(reader->Do("PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(reader->Do("AUTH t-writer"), "OK");
  EXPECT_EQ(reader->Do("GET rows:k"), "nil");
}

TEST_F(RespSecurityTest, AConnectionThatAsksForNothingLosesItsRightsToo) {
  Serve(WithTokens());
  const auto reader = As("reader");
  WriteTokens({{"writer", R"({"rows": "write"})"}});
  EXPECT_TRUE(Eventually([&] { return reader->Do("PING") == "-NOAUTH Authentication required."; }));
}

TEST_F(RespSecurityTest, CursorsAreTheirCallersAlone) {
  Serve(WithTokens());
  const auto writer = As("writer");
  for (int i = 0; i < 50; ++i) writer->Do("SET rows:k" + std::to_string(i) + " v");
  const std::string part = writer->Do("SCAN 0 MATCH rows:* COUNT 5");
  const std::string cursor = part.substr(2, part.find('"', 2) - 2);
  EXPECT_THAT(As("reader")->Do("SCAN " + cursor), HasSubstr("-ERR cursor: "));
  EXPECT_THAT(writer->Do("SCAN " + cursor), StartsWith("[\""));
}

TEST_F(RespSecurityTest, NoErrorShowsAKeyOrAValue) {
  Serve(RespOptions());
  for (const char* command :
       {"HSET rows:secret f", "SET rows:secret secret EX 10", "GET rows:secret:a:b",
        "JSON.SET docs:5 $ {\"secret\"", "ZADD links:1 secret secret", "NONSENSE secret",
        "XADD rows:secret:c secret v secret", "INCRBY rows:n secret", "KV.GET rows secret secret",
        "GET secret", "SCAN secret", "SELECT secret", "HSCAN rows:secret 0 MATCH"})
    EXPECT_THAT(Do(command), AllOf(StartsWith("-"), Not(HasSubstr("secret")))) << command;
}

TEST_F(RespSecurityTest, AKeyWithoutADatasetIsNotTakenForTheNameOfOne) {
  Serve(WithTokens());
  const auto reader = As("reader");
  const auto writer = As("writer");
  for (const char* command : {"GET secret", "EXISTS rows:r secret", "MGET rows:r secret", "TYPE secret",
                              "HSET secret f v", "ZCARD secret", "JSON.MGET docs:5 secret $"}) {
    EXPECT_THAT(reader->Do(command), AllOf(StartsWith("-"), Not(HasSubstr("secret")))) << command;
  }
  EXPECT_THAT(reader->Do("GET secret"), StartsWith("-ERR key: it names no dataset"));
  EXPECT_THAT(writer->Do("DEL rows:r secret"), StartsWith("-ERR key: it names no dataset"));
  EXPECT_EQ(RespClient(address()).Do("GET secret"), "-NOAUTH Authentication required.");
}

// ---- TLS ----

/// A TLS client of the Redis protocol.
class TlsClient {
 public:
  TlsClient(const std::string& address, const std::string& ca, const Authority::Files& own = {})
      : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!own.cert.empty()) {
      SSL_CTX_use_certificate_file(context_.get(), own.cert.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), own.key.c_str(), SSL_FILETYPE_PEM);
    }
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in server =
        Loopback(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), 0);
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), socket_);
    is_open_ = SSL_connect(tls_.get()) == 1;
  }
  ~TlsClient() {
    tls_.reset();
    ::close(socket_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// Returns the first line of the answer; empty if the connection is closed.
  std::string Do(std::string_view line) {
    const std::string command = RespClient::Encode(line);
    if (!is_open_ || SSL_write(tls_.get(), command.data(), static_cast<int>(command.size())) <= 0) return "";
    std::string answer;
    char byte = 0;
    while (SSL_read(tls_.get(), &byte, 1) == 1 && byte != '\r') answer += byte;
    SSL_read(tls_.get(), &byte, 1);
    return answer;
  }
  /// Sends bytes, and reads so many.
  size_t Exchange(const std::string& bytes, size_t wanted) {
    if (SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) <= 0) return 0;
    std::vector<char> room(1 << 16);
    size_t read = 0;
    while (read < wanted) {
      const int some = SSL_read(tls_.get(), room.data(), static_cast<int>(room.size()));
      if (some <= 0) break;
      read += static_cast<size_t>(some);
    }
    return read;
  }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  int socket_ = -1;
  bool is_open_ = false;
};

TEST_F(RespSecurityTest, TlsEncryptsWithTheServersCertificate) {
  Authority authority(dir_.path(), "authority");
  Authority stranger(dir_.path(), "stranger");
  ServerOptions options = WithTokens();
  const Authority::Files server = authority.Issue("server");
  options.tls = {.cert = server.cert, .key = server.key, .client_ca = {}};
  Serve(options);
  TlsClient client(address(), authority.file());
  EXPECT_EQ(client.Do("PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(client.Do("AUTH t-writer"), "+OK");
  EXPECT_EQ(client.Do("SET rows:k v"), "+OK");
  // A pipeline, and answers of several records.
  const std::string value(100'000, 'v');
  std::string pipeline = RespClient::Encode({"SET", "rows:large", value});
  for (int i = 0; i < 20; ++i) pipeline += RespClient::Encode("GET rows:large");
  const size_t wanted = 5 + 20 * (value.size() + 11);
  EXPECT_EQ(client.Exchange(pipeline, wanted), wanted);
  EXPECT_EQ(client.Do("QUIT"), "+OK");
  EXPECT_EQ(TlsClient(address(), stranger.file()).Do("PING"), "") << "another authority's server";
  RespClient plain(address());
  plain.Send("PING\r\n");
  EXPECT_TRUE(plain.IsClosed()) << "without encryption";
}

TEST_F(RespSecurityTest, ACertificateIdentifiesItsCaller) {
  Authority authority(dir_.path(), "authority");
  Authority stranger(dir_.path(), "stranger");
  std::ofstream(dir_ / "tokens.json")
      << R"({"tokens": [{"name": "ops", "common_name": "ops.example", "rights": {"rows": "read"}}]})";
  ServerOptions options = RespOptions();
  const Authority::Files server = authority.Issue("server");
  options.tls = {.cert = server.cert, .key = server.key, .client_ca = authority.file()};
  options.tokens = dir_ / "tokens.json";
  served_ = std::make_unique<Served>(options);
  ASSERT_OK(served_->router().CreateDataset({.name = "rows"}));
  EXPECT_EQ(TlsClient(address(), authority.file(), authority.Issue("ops.example")).Do("GET rows:k"), "$-1");
  EXPECT_THAT(TlsClient(address(), authority.file(), authority.Issue("ops.example")).Do("SET rows:k v"),
              StartsWith("-NOPERM 'ops' lacks"));
  EXPECT_EQ(TlsClient(address(), authority.file(), authority.Issue("other.example")).Do("GET rows:k"),
            "-NOAUTH Authentication required.");
  EXPECT_EQ(TlsClient(address(), authority.file(), authority.Issue("ops.example", 0)).Do("GET rows:k"), "");
  EXPECT_EQ(TlsClient(address(), authority.file(), stranger.Issue("ops.example")).Do("GET rows:k"), "");
  EXPECT_EQ(TlsClient(address(), authority.file()).Do("GET rows:k"), "");
}

TEST_F(RespSecurityTest, ItIsNotServedUnprotected) {
  Served served;
  ServerOptions options = TestServerOptions();
  options.resp = "0.0.0.0:0";
  EXPECT_THAT(Server::Start(served.router(), options),
              FailsWith(absl::StatusCode::kInvalidArgument, "server.resp: '0.0.0.0:0' can be reached"));
  options.resp = "nonsense";
  EXPECT_THAT(Server::Start(served.router(), options),
              FailsWith(absl::StatusCode::kInvalidArgument, "server.resp: 'nonsense' is not an address"));
  options.resp = served.address();
  EXPECT_THAT(Server::Start(served.router(), options),
              FailsWith(absl::StatusCode::kUnavailable, "cannot listen on"));
}

}  // namespace
}  // namespace kvstore::testing
