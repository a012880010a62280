#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "backend_api/migrations.h"
#include "server/call/access.h"
#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"

/// Which callers may do what, and which clients may not even connect.
namespace kvstore {
namespace {

using server::Right;
using testing::Authority;
using testing::FailsWith;
using testing::Served;
using testing::TempDir;

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

/// The callers, with their tokens and their rights on the datasets "open" and "secret".
struct Caller {
  std::string token;
  Right on_open;
  Right on_secret;
};
const std::map<std::string, Caller> kCallers = {
    {"nobody", {"t-none", Right::kNone, Right::kNone}},   {"reader", {"t-read", Right::kRead, Right::kNone}},
    {"writer", {"t-write", Right::kWrite, Right::kRead}}, {"owner", {"t-own", Right::kAdmin, Right::kWrite}},
    {"admin", {"t-admin", Right::kAdmin, Right::kAdmin}},
};

std::string Name(Right right) {
  switch (right) {
    case Right::kNone:
      return "none";
    case Right::kRead:
      return "read";
    case Right::kWrite:
      return "write";
    case Right::kAdmin:
      return "admin";
  }
  return "";
}

void WriteTokens(const std::filesystem::path& file) {
  std::ofstream out(file);
  out << R"({"tokens": [)";
  const char* comma = "";
  for (const auto& [name, caller] : kCallers) {
    out << comma << R"({"name": ")" << name << R"(", "sha256": ")" << server::TokenDigest(caller.token)
        << R"(", "rights": {)";
    const char* inner = "";
    for (const std::string shape : {"rows", "objects", "mappings"}) {
      out << inner << "\"open-" << shape << "\": \"" << Name(caller.on_open) << "\", \"secret-" << shape
          << "\": \"" << Name(caller.on_secret) << "\"";
      inner = ", ";
    }
    out << "}}";
    comma = ",\n";
  }
  out << "]}";
}

/// A call of the interface, and the right that it needs.
struct RightCheck {
  const char* name;
  Right needs;
  /// `group` is "open-" or "secret-".
  std::function<absl::Status(KVStore&, const std::string& group)> call;
};

/// The answer about an object that does not exist shows that the store was asked.
absl::Status Reached(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) ? absl::OkStatus() : status;
}
constexpr uint64_t kNoObject = 1;

std::vector<RightCheck> Operations() {
  const auto rows = [](const std::string& group) { return group + "rows"; };
  const auto objects = [](const std::string& group) { return group + "objects"; };
  const auto mappings = [](const std::string& group) { return group + "mappings"; };
  static const std::string kKey = "r";
  static const CellWrite kCell{"c", "v", 1};
  return {
      {"GetDataset", Right::kRead, [=](KVStore& s, auto& g) { return s.GetDataset(rows(g)).status(); }},
      {"GetStats", Right::kRead, [=](KVStore& s, auto& g) { return s.GetStats(rows(g)).status(); }},
      {"ReadChanges", Right::kRead,
       [=](KVStore& s, auto& g) {
         // The dataset keeps none, which only those who may read it are told.
         const auto status = s.ReadChanges(rows(g), kChangesFromBegin, {}).status();
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
       }},
      {"WatchChanges", Right::kRead,
       [=](KVStore& s, auto& g) {
         const auto status = s.WatchChanges(rows(g), kChangesFromBegin).status();
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
       }},
      {"ListConsumers", Right::kRead,
       [=](KVStore& s, auto& g) {
         const auto status = s.ListConsumers(rows(g)).status();
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
       }},
      {"SetConsumer", Right::kWrite,
       [=](KVStore& s, auto& g) {
         const auto status = s.SetConsumer(rows(g), "search", kChangesFromNow);
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
       }},
      {"DropConsumer", Right::kWrite,
       [=](KVStore& s, auto& g) {
         const auto status = s.DropConsumer(rows(g), "search");
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
       }},
      {"GetRow", Right::kRead, [=](KVStore& s, auto& g) { return s.GetRow(rows(g), "r", {}).status(); }},
      {"GetRows", Right::kRead,
       [=](KVStore& s, auto& g) {
         const RowRead read{kKey, {}};
         return s.GetRows(rows(g), {&read, 1}).status();
       }},
      {"ScanRows", Right::kRead, [=](KVStore& s, auto& g) { return s.ScanRows(rows(g), {}, {}).status(); }},
      {"ListPartitions", Right::kRead,
       [=](KVStore& s, auto& g) { return s.ListPartitions(rows(g), 2).status(); }},
      {"GetObject", Right::kRead,
       [=](KVStore& s, auto& g) { return Reached(s.GetObject(objects(g), kNoObject, {}).status()); }},
      {"GetObjects", Right::kRead,
       [=](KVStore& s, auto& g) {
         const uint64_t id = 1;
         return s.GetObjects(objects(g), {&id, 1}, {}).status();
       }},
      {"ScanObjects", Right::kRead,
       [=](KVStore& s, auto& g) { return s.ScanObjects(objects(g), {}, {}).status(); }},
      {"ScanMappings", Right::kRead,
       [=](KVStore& s, auto& g) { return s.ScanMappings(mappings(g), {}, {}).status(); }},
      {"ListMapping", Right::kRead,
       [=](KVStore& s, auto& g) { return s.ListMapping(mappings(g), 1, {}).status(); }},
      {"CountMapping", Right::kRead,
       [=](KVStore& s, auto& g) { return s.CountMapping(mappings(g), 1).status(); }},
      {"ListObjects", Right::kRead,
       [=](KVStore& s, auto& g) { return s.ListObjects(mappings(g), 1, {}).status(); }},
      {"PutRow", Right::kWrite,
       [=](KVStore& s, auto& g) {
         return s.PutRow(rows(g), "r", {&kCell, 1}, {}).status();
       }},
      {"PutRows", Right::kWrite,
       [=](KVStore& s, auto& g) {
         const RowWrite write{kKey, {&kCell, 1}, {}};
         return s.PutRows(rows(g), {&write, 1}).status();
       }},
      {"ImportRows", Right::kWrite,
       [=](KVStore& s, auto& g) {
         // More than fits into one message, so that it is an import.
         static const std::string kLarge(3 << 20, 'v');
         static const CellWrite kBig{"c", kLarge, 1};
         const std::vector<RowWrite> writes(6, RowWrite{kKey, {&kBig, 1}, {}});
         const auto results = s.PutRows(rows(g), writes);
         return results.ok() ? results->front().status() : results.status();
       }},
      {"DeleteRow", Right::kWrite, [=](KVStore& s, auto& g) { return s.DeleteRow(rows(g), "x", {}); }},
      {"DeleteRows", Right::kWrite,
       [=](KVStore& s, auto& g) {
         const RowDelete one{kKey, {}};
         return s.DeleteRows(rows(g), {&one, 1}).status();
       }},
      {"CreateObject", Right::kWrite,
       [=](KVStore& s, auto& g) { return s.CreateObject(objects(g), "{}", {}).status(); }},
      {"UpdateObject", Right::kWrite,
       [=](KVStore& s, auto& g) { return Reached(s.PatchObject(objects(g), kNoObject, "{}", {}).status()); }},
      {"DeleteObject", Right::kWrite,
       [=](KVStore& s, auto& g) { return Reached(s.DeleteObject(objects(g), kNoObject, false)); }},
      {"AddMapping", Right::kWrite, [=](KVStore& s, auto& g) { return s.AddMapping(mappings(g), 1, 2, 3); }},
      {"RemoveMapping", Right::kWrite,
       [=](KVStore& s, auto& g) { return s.RemoveMapping(mappings(g), 1, 9).status(); }},
      {"AlterDataset", Right::kAdmin,
       [=](KVStore& s, auto& g) { return s.AlterDataset(rows(g), {.ttl_ms = 0}); }},
      {"Migrate", Right::kAdmin,
       [=](KVStore& s, auto& g) {
         // This server has no migrations, which only those who have the right are told.
         const auto status =
             dynamic_cast<Migrations&>(s).Command({{"command", "status"}, {"dataset", rows(g)}}).status();
         return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
       }},
      {"Compact", Right::kAdmin, [=](KVStore& s, auto& g) { return s.Compact(rows(g), nullptr).status(); }},
  };
}

class SecurityTest : public ::testing::Test {
 protected:
  void Serve(const ServerOptions& options) {
    served_ = std::make_unique<Served>(options);
    for (const std::string group : {"open-", "secret-"}) {
      ASSERT_OK(served_->router().CreateDataset({.name = group + "rows"}));
      ASSERT_OK(served_->router().CreateDataset({.name = group + "objects", .shape = Shape::kObjects}));
      ASSERT_OK(served_->router().CreateDataset({.name = group + "mappings", .shape = Shape::kMappings}));
    }
  }
  ServerOptions WithTokens() {
    WriteTokens(dir_ / "tokens.json");
    ServerOptions options = testing::TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    return options;
  }

  const TempDir dir_;
  std::unique_ptr<Served> served_;
};

TEST_F(SecurityTest, EveryCallerMayDoWhatItsRightsSayAndNoMore) {
  Serve(WithTokens());
  for (const auto& [name, caller] : kCallers) {
    const auto store = served_->Client({.token = caller.token});
    for (const std::string group : {"open-", "secret-"}) {
      const Right right = group == "open-" ? caller.on_open : caller.on_secret;
      for (const RightCheck& operation : Operations()) {
        const absl::Status status = operation.call(*store, group);
        if (right >= operation.needs) {
          EXPECT_OK(status) << name << " " << operation.name << " " << group;
        } else {
          EXPECT_EQ(status.code(), kDenied)
              << name << " " << operation.name << " " << group << ": " << status;
        }
      }
    }
  }
}

TEST_F(SecurityTest, DatasetsAreMadeAndDroppedByWhoMayAdministerThem) {
  Serve(WithTokens());
  const auto writer = served_->Client({.token = "t-write"});
  EXPECT_THAT(writer->CreateDataset({.name = "new"}),
              FailsWith(kDenied, "'writer' lacks the right to administer 'new'"));
  EXPECT_THAT(writer->DropDataset("open-rows", {}), FailsWith(kDenied, ""));
  const auto owner = served_->Client({.token = "t-own"});
  EXPECT_OK(owner->DropDataset("open-rows", {}));
  EXPECT_OK(owner->CreateDataset({.name = "open-rows"}));
  EXPECT_THAT(owner->DropDataset("secret-rows", {}), FailsWith(kDenied, ""));
}

TEST_F(SecurityTest, ListsShowWhatTheCallerMayRead) {
  Serve(WithTokens());
  const auto names = [&](const std::string& token) {
    const auto specs = served_->Client({.token = token})->ListDatasets();
    std::string text;
    for (const DatasetSpec& spec : *specs) text += spec.name + " ";
    return text;
  };
  EXPECT_EQ(names("t-none"), "");
  EXPECT_EQ(names("t-read"), "open-mappings open-objects open-rows ");
  EXPECT_EQ(names("t-write"),
            "open-mappings open-objects open-rows secret-mappings secret-objects secret-rows ");
}

TEST_F(SecurityTest, AJoinShowsNoObjectThatTheCallerMayNotRead) {
  Serve(WithTokens());
  Router& router = served_->router();
  const uint64_t open = *router.CreateObject("open-objects", R"({"n":"open"})", {});
  const uint64_t secret = *router.CreateObject("secret-objects", R"({"n":"secret"})", {});
  ASSERT_OK(router.AddMapping("open-mappings", 1, open, 1));
  ASSERT_OK(router.AddMapping("open-mappings", 1, secret, 2));
  ASSERT_OK_AND_ASSIGN(const JoinedPage page,
                       served_->Client({.token = "t-read"})->ListObjects("open-mappings", 1, {}));
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].object->data, R"({"n":"open"})");
  EXPECT_THAT(page.objects[1].object, FailsWith(kDenied, "'reader'"));
}

TEST_F(SecurityTest, WithoutAGoodTokenNothingIsDone) {
  Serve(WithTokens());
  EXPECT_THAT(served_->Client()->GetRow("open-rows", "r", {}),
              FailsWith(kUnauthenticated, "no token was given"));
  const std::string wrong = "t-wrong";
  const absl::Status status = served_->Client({.token = wrong})->GetRow("open-rows", "r", {}).status();
  EXPECT_THAT(status, FailsWith(kUnauthenticated, "not known"));
  EXPECT_EQ(std::string(status.message()).find(wrong), std::string::npos) << "an error quotes a secret";
}

TEST_F(SecurityTest, TlsWantsTheRightCertificates) {
  Authority authority(dir_.path(), "authority");
  Authority stranger(dir_.path(), "stranger");
  ServerOptions options = testing::TestServerOptions();
  const Authority::Files server = authority.Issue("server");
  options.tls.cert = server.cert;
  options.tls.key = server.key;
  Serve(options);
  const auto get = [&](const ConnectOptions& connect) {
    return served_->Client(connect)->GetRow("open-rows", "r", {}).status();
  };
  EXPECT_OK(get({.tls = ClientTls{.ca = authority.file()}}));
  // The client rejects a server with a certificate of another authority, and the server a client without TLS.
  EXPECT_THAT(get({.tls = ClientTls{.ca = stranger.file()}, .deadline_ms = 1500}),
              FailsWith(absl::StatusCode::kUnavailable, ""));
  EXPECT_FALSE(get({.deadline_ms = 1500}).ok());
  EXPECT_THAT(
      get({.tls = ClientTls{.ca = authority.file(), .server_name = "other.example"}, .deadline_ms = 1500}),
      FailsWith(absl::StatusCode::kUnavailable, ""));
  EXPECT_THAT(Connect(served_->address(), {.tls = ClientTls{.ca = "/nowhere.pem"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "tls.ca: cannot read /nowhere.pem"));
}

TEST_F(SecurityTest, AnExpiredServerIsNotTrusted) {
  Authority authority(dir_.path(), "authority");
  ServerOptions options = testing::TestServerOptions();
  const Authority::Files server = authority.Issue("server", 0);
  options.tls.cert = server.cert;
  options.tls.key = server.key;
  Serve(options);
  EXPECT_FALSE(served_->Client({.tls = ClientTls{.ca = authority.file()}, .deadline_ms = 300})
                   ->GetRow("open-rows", "r", {})
                   .ok());
}

TEST_F(SecurityTest, MutualTlsKnowsTheClientByItsCertificate) {
  Authority authority(dir_.path(), "authority");
  Authority stranger(dir_.path(), "stranger");
  std::ofstream(dir_ / "tokens.json")
      << R"({"tokens": [{"name": "ops", "common_name": "ops.example", "rights": {"*": "read"}}]})";
  ServerOptions options = testing::TestServerOptions();
  const Authority::Files server = authority.Issue("server");
  options.tls = {.cert = server.cert, .key = server.key, .client_ca = authority.file()};
  options.tokens = dir_ / "tokens.json";
  Serve(options);
  // A client whose certificate is refused tries again until its deadline.
  const auto get = [&](const Authority::Files& files, uint32_t deadline_ms = 30'000) {
    return served_
        ->Client({.tls = ClientTls{.ca = authority.file(), .cert = files.cert, .key = files.key},
                  .deadline_ms = deadline_ms})
        ->GetRow("open-rows", "r", {})
        .status();
  };
  EXPECT_OK(get(authority.Issue("ops.example")));
  EXPECT_THAT(get(authority.Issue("other.example")), FailsWith(kUnauthenticated, ""));
  EXPECT_FALSE(get(authority.Issue("ops.example", 0), 500).ok()) << "expired";
  EXPECT_FALSE(get(stranger.Issue("ops.example"), 500).ok()) << "of another authority";
  EXPECT_FALSE(get({}, 500).ok()) << "without one";
}

TEST_F(SecurityTest, AServerDoesNotStartUnprotected) {
  Served served;
  ServerOptions options;
  options.listen = {"0.0.0.0:0"};
  EXPECT_THAT(Server::Start(served.router(), options),
              FailsWith(absl::StatusCode::kInvalidArgument, "server.tls"));
  options.listen = {"127.0.0.1:0"};
  options.tls.cert = "/nowhere.pem";
  EXPECT_THAT(Server::Start(served.router(), options),
              FailsWith(absl::StatusCode::kInvalidArgument, "server.tls.cert: cannot read /nowhere.pem"));
}

}  // namespace
}  // namespace kvstore
