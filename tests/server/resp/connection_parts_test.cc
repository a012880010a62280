#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/call/access.h"
#include "server/call/call.h"
#include "server/grpc/unary_call.h"
#include "server/resp/commands/answer_memory.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/table.h"
#include "server/resp/connection.h"
#include "server/resp/environment.h"
#include "server/resp/request.h"
#include "server/resp/run.h"
#include "server/resp/writes.h"
#include "tests/server/resp/resp_client.h"
#include "tests/server/resp/resp_fixture.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A connection over a channel that does what a test wants, and the parts of a connection by themselves.
namespace kvstore::testing {
namespace {

namespace resp = server::resp;
using server::Core;
using server::resp::AnswerMemory;
using server::resp::Channel;
using server::resp::ChannelOwner;
using server::resp::Connection;
using server::resp::Request;

/// The behaviour of a FakeChannel, and what it was told to do.
struct Wire {
  bool opens = true;  ///< The handshake ends.
  bool takes = true;  ///< The client takes what is sent.
  bool is_gone = false;
  std::string sent;  ///< To the client.
  bool closed = false;
  std::shared_ptr<ChannelOwner> reader;
  std::span<char> room;
};

class FakeChannel : public Channel {
 public:
  explicit FakeChannel(Wire& wire) : wire_(wire) {}

  void Open(std::shared_ptr<ChannelOwner> owner) override {
    if (wire_.opens) owner->OnOpened({});
  }
  void Read(std::shared_ptr<ChannelOwner> owner, std::span<char> room) override {
    wire_.reader = std::move(owner);
    wire_.room = room;
  }
  size_t TryWrite(std::string_view bytes) override {
    if (!wire_.takes) return 0;
    wire_.sent += bytes;
    return bytes.size();
  }
  /// A client that takes nothing lets no write end.
  void Write(std::shared_ptr<ChannelOwner>, std::string_view) override {}
  void End(std::shared_ptr<ChannelOwner>) override {}
  bool IsGone() override { return wire_.is_gone; }
  void Close() override { wire_.closed = true; }
  std::string CommonName() override { return ""; }

 private:
  Wire& wire_;
};

/// The transport of a call whose caller has this token.
class TokenTransport : public server::CallTransport {
 public:
  explicit TokenTransport(std::string_view token) : authorization_("Bearer " + std::string(token)) {}
  std::string_view Authorization() const override { return authorization_; }
  std::string CommonName() const override { return ""; }
  std::string Peer() const override { return "ipv4:127.0.0.1:1"; }
  std::optional<std::string_view> ExpectedBackend() const override { return std::nullopt; }
  bool WantsMigrationErrors() const override { return false; }
  void Cancel() override {}
  void SendOutcome(server::CallOutcome) override {}

 private:
  const std::string authorization_;
};

class RespPartsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(served_.router().CreateDataset({.name = "rows"})); }
  void TearDown() override {
    if (connection_ != nullptr) connection_->Close();
    // Calls in flight end, and keep the connection until then.
    const std::weak_ptr<Connection> left = std::exchange(connection_, nullptr);
    wire_.reader.reset();
    EXPECT_TRUE(LoopUntil([&] { return left.expired(); }));
    puts_.reset();
  }

  void MakeCore(const std::filesystem::path& tokens = {}) {
    auto access = server::Access::Open(tokens);
    ASSERT_OK(access);
    options_.tokens = tokens;
    core_ = std::make_unique<Core>(served_.router(), options_, *std::move(access), ServerParts());
  }
  void Connect() {
    MakeCore();
    puts_ = std::make_unique<server::resp::PutGroups>(loop_, *core_);
    connection_ = std::make_shared<Connection>(
        server::resp::Environment{.core = *core_,
                                  .cursors = cursors_,
                                  .figures = figures_,
                                  .limits = {.each_loop = 1'000, .each_caller = 1'000}},
        loop_, *puts_, turns_, std::make_unique<FakeChannel>(wire_), "ipv4:127.0.0.1:1", [](Connection&) {});
    connection_->Start();
  }
  /// Lets bytes of the client arrive, however often they have to be read.
  void Arrive(std::string_view bytes) {
    while (!bytes.empty()) {
      ASSERT_TRUE(LoopUntil([&] { return wire_.reader != nullptr; }));
      const auto reader = std::exchange(wire_.reader, nullptr);
      const std::string_view some = bytes.substr(0, wire_.room.size());
      std::memcpy(wire_.room.data(), some.data(), some.size());
      bytes.remove_prefix(some.size());
      reader->OnRead({}, some.size());
    }
  }
  /// Runs the loop until this holds.
  bool LoopUntil(const std::function<bool()>& holds) {
    return Eventually([&] {
      loop_.restart();
      loop_.poll();
      return holds();
    });
  }
  /// Puts a row of so many MiB.
  void PutLargeRow(int mebibytes) {
    const std::string value(1 << 20, 'v');
    for (int i = 0; i < mebibytes; ++i) {
      const std::string column = "c" + std::to_string(i);
      const CellWrite cell{column, value, std::nullopt};
      ASSERT_OK(served_.router().PutRow("rows", "large", {&cell, 1}, {}));
    }
  }
  size_t InFlight() const { return core_->access->BytesInFlight(); }

  Served served_;
  ServerOptions options_ = TestServerOptions();
  std::unique_ptr<Core> core_;
  server::resp::Cursors cursors_;
  server::resp::Figures figures_;
  boost::asio::io_context loop_;
  std::unique_ptr<server::resp::PutGroups> puts_;
  server::resp::Turns turns_{loop_};
  Wire wire_;
  std::shared_ptr<Connection> connection_;
};

// ---- connections ----

TEST_F(RespPartsTest, AnIdleConnectionGivesTheMemoryOfALargeAnswerBack) {
  PutLargeRow(8);
  Connect();
  Arrive(RespClient::Encode("HGETALL rows:large"));
  ASSERT_TRUE(LoopUntil([&] { return wire_.sent.size() > (8u << 20) && wire_.reader != nullptr; }));
  EXPECT_LT(connection_->memory(), 256u << 10);
}

TEST_F(RespPartsTest, AnIdleConnectionGivesTheMemoryOfALargeCommandBack) {
  Connect();
  Arrive(RespClient::Encode({"ECHO", std::string(7 << 20, 'x')}));
  ASSERT_TRUE(LoopUntil([&] { return wire_.sent.size() > (7u << 20) && wire_.reader != nullptr; }));
  EXPECT_LT(connection_->memory(), 256u << 10);
}

TEST_F(RespPartsTest, AnAnswerThatWaitsBehindAnotherCountsAsInMemory) {
  PutLargeRow(8);
  Connect();
  wire_.takes = false;
  Arrive(RespClient::Encode({"ECHO", std::string(100'000, 'x')}));
  Arrive(RespClient::Encode("HGETALL rows:large"));
  EXPECT_TRUE(LoopUntil([&] { return connection_->memory() > (8u << 20); }));
  EXPECT_GT(InFlight(), 8u << 20) << "also when its call has ended";
  connection_->Close();
  connection_.reset();
  EXPECT_TRUE(LoopUntil([&] { return InFlight() == 0; }));
}

TEST_F(RespPartsTest, WhatIsCarriedOutForAClientThatIsGoneIsCancelled) {
  PutLargeRow(2);
  Connect();
  Arrive(RespClient::Encode("HGETALL rows:large"));
  const auto now = Connection::Clock::now();
  connection_->CheckTime(now);
  EXPECT_FALSE(wire_.closed) << "the client waits for its answer";
  wire_.is_gone = true;
  connection_->CheckTime(now);
  EXPECT_TRUE(wire_.closed);
  EXPECT_TRUE(LoopUntil([&] { return core_->admission.calls() == 0; }));
  EXPECT_EQ(wire_.sent, "");
}

TEST_F(RespPartsTest, AServerThatStopsDoesNotWaitForAHandshake) {
  wire_.opens = false;
  Connect();
  EXPECT_FALSE(wire_.closed);
  connection_->Drain();
  EXPECT_TRUE(wire_.closed);
}

// ---- the memory of answers ----

TEST_F(RespPartsTest, AnAnswerIsRefusedWhenOthersFillTheShare) {
  options_.limits.max_bytes = 32 << 20;
  MakeCore();
  TokenTransport transport("");
  server::resp::CommandCall one(*core_, server::Operation::kGetRow, {.transport = transport});
  server::resp::CommandCall other(*core_, server::Operation::kGetRow, {.transport = transport});
  ASSERT_OK(one.Admit("rows", {}, false));
  ASSERT_OK(other.Admit("rows", {}, false));
  {
    AnswerMemory memory(one);
    EXPECT_OK(memory.Hold(20 << 20));
    EXPECT_OK(memory.Hold(20 << 20)) << "an answer that is alone may be larger than the share";
    EXPECT_EQ(InFlight(), 40u << 20);
    AnswerMemory second(other);
    EXPECT_THAT(second.Hold(1 << 20), FailsWith(absl::StatusCode::kResourceExhausted, "too many"));
    EXPECT_OK(memory.Hold(1 << 20));
  }
  EXPECT_EQ(InFlight(), 0u);
}

TEST_F(RespPartsTest, TheCallsOfACallerThatHasManyTakeTurnsWithOthers) {
  const TempDir dir;
  std::ofstream(dir / "tokens.json") << R"({"tokens": [{"name": "many", "sha256": ")"
                                     << server::TokenDigest("many") << R"(", "rights": {"*": "read"}},)"
                                     << R"({"name": "few", "sha256": ")" << server::TokenDigest("few")
                                     << R"(", "rights": {"*": "read"}}]})";
  MakeCore(dir / "tokens.json");
  TokenTransport many("many");
  TokenTransport few("few");
  std::vector<std::unique_ptr<server::resp::CommandCall>> calls;
  const auto begin = [&](TokenTransport& transport) {
    calls.push_back(std::make_unique<server::resp::CommandCall>(*core_, server::Operation::kGetRow,
                                                                server::CallInfo{.transport = transport}));
    EXPECT_OK(calls.back()->Admit("rows", {}, false));
    return calls.back()->RunsInline();
  };
  // While there is nobody else, one who has many does not wait.
  for (int i = 0; i < 65; ++i) EXPECT_TRUE(begin(many)) << i;
  EXPECT_TRUE(begin(few));
  EXPECT_FALSE(begin(many));
  calls.clear();
  EXPECT_TRUE(begin(few));
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(begin(many)) << i;
  EXPECT_FALSE(begin(many));
  calls.clear();
  EXPECT_TRUE(begin(many));
  calls.clear();
}

TEST_F(RespPartsTest, AListThatPassesOrReturnsManyEntriesIsNotQuick) {
  MakeCore();
  TokenTransport transport("");
  const auto is_quick = [&](uint64_t offset, uint32_t limit) {
    v1::ListMappingRequest request;
    request.set_dataset("rows");
    request.mutable_options()->set_offset(offset);
    request.mutable_options()->set_limit(limit);
    v1::ListMappingResponse response;
    server::UnaryCall<v1::ListMappingRequest, v1::ListMappingResponse> call(
        *core_, server::Operation::kListMapping, {.transport = transport}, request, response);
    EXPECT_OK(call.Admit({}));
    const bool inline_here = call.RunsInline();
    call.End(absl::OkStatus());
    return inline_here;
  };
  EXPECT_TRUE(is_quick(1'000, 1'000));
  EXPECT_FALSE(is_quick(1'001, 10));
  EXPECT_FALSE(is_quick(0, 1'001));
}

// ---- plans ----

/// A command that was begun.
struct Begun {
  Begun(Core& core, server::resp::Cursors& cursors, std::string_view token, std::vector<std::string> given)
      : words(std::move(given)),
        transport(token),
        session(core, server::Operation::kCalls, {.transport = transport}),
        request(std::make_unique<Request>()) {
    request->arguments.assign(words.begin(), words.end());
    request->command = server::resp::FindCommand(words[0]);
    EXPECT_OK(session.Authenticate());
    server::resp::Begin(core, cursors, session, {.transport = transport}, *request);
  }

  const std::vector<std::string> words;
  TokenTransport transport;
  server::resp::CommandCall session;
  std::unique_ptr<Request> request;
};

std::vector<std::string> PutOf(int cells, const std::string& command = "HSET") {
  std::vector<std::string> words = {command, "rows:r"};
  for (int i = 0; i < cells; ++i) {
    words.push_back("c" + std::to_string(i));
    words.emplace_back("v");
  }
  return words;
}

TEST_F(RespPartsTest, NothingIsPlannedForACallerWithoutTheRight) {
  const TempDir dir;
  std::ofstream(dir / "tokens.json") << R"({"tokens": [{"name": "reader", "sha256": ")"
                                     << server::TokenDigest("r")
                                     << R"(", "rights": {"rows": "read"}}, {"name": "writer", "sha256": ")"
                                     << server::TokenDigest("w") << R"(", "rights": {"rows": "write"}}]})";
  MakeCore(dir / "tokens.json");
  const Begun refused(*core_, cursors_, "r", PutOf(3));
  EXPECT_THAT(refused.request->status, FailsWith(absl::StatusCode::kPermissionDenied, "lacks the right"));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(refused.request->plan));
  EXPECT_EQ(refused.request->call->dataset(), "rows") << "the log says what was refused";
  const Begun allowed(*core_, cursors_, "w", PutOf(3));
  EXPECT_OK(allowed.request->status);
  EXPECT_TRUE(std::holds_alternative<server::resp::WritePlan>(allowed.request->plan));
}

TEST_F(RespPartsTest, AKeyWithoutADatasetIsNotTheDatasetOfTheCall) {
  MakeCore();
  const Begun begun(*core_, cursors_, "", {"GET", "secret"});
  EXPECT_THAT(begun.request->status, FailsWith(absl::StatusCode::kInvalidArgument, "names no dataset"));
  EXPECT_EQ(begun.request->call->dataset(), "");
}

/// A connection of a caller, with a put.
class Putting : public server::resp::PutMember {
 public:
  Putting(std::string name, const void* caller, std::unique_ptr<Request> put, std::vector<std::string>& done)
      : name_(std::move(name)), caller_(caller), done_(done) {
    puts_.push_back(std::move(put));
  }
  const void* caller() const override { return caller_; }
  const server::resp::Requests& puts() override { return puts_; }
  void PutsDone(std::chrono::steady_clock::duration) override {
    std::string answer;
    server::resp::Encoder out(answer, server::resp::Version::kResp2);
    server::resp::AppendPut(*puts_.front(), out);
    done_.push_back(name_ + " " + answer.substr(0, 3));
  }

 private:
  const std::string name_;
  const void* const caller_;
  server::resp::Requests puts_;
  std::vector<std::string>& done_;
};

TEST_F(RespPartsTest, CallersTakeTurnsInGroupsThatAreFlushed) {
  MakeCore();
  server::resp::PutGroups groups(loop_, *core_);
  std::vector<std::string> done;
  const int one = 0;
  const int other = 0;
  // Four of them fill a group.
  std::vector<std::unique_ptr<Begun>> begun;
  const auto add = [&](const std::string& name, const void* caller) {
    begun.push_back(std::make_unique<Begun>(*core_, cursors_, "", PutOf(1'000, "HMSET")));
    groups.flushed.Add(std::make_shared<Putting>(name, caller, std::move(begun.back()->request), done));
  };
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) add(name, &one);
  add("b1", &other);
  ASSERT_TRUE(LoopUntil([&] { return done.size() == 6; }));
  EXPECT_EQ(done, (std::vector<std::string>{"a1 +OK", "b1 +OK", "a2 +OK", "a3 +OK", "a4 +OK", "a5 +OK"}));
}

TEST_F(RespPartsTest, PutsThatTheDiskMustKeepAreFlushedTogether) {
  ASSERT_OK(served_.router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  MakeCore();
  Begun one(*core_, cursors_, "", {"HSET", "safe:r", "f", "v"});
  const Begun other(*core_, cursors_, "", {"HSET", "safe:s", "f", "v"});
  const Begun quick(*core_, cursors_, "", {"HSET", "rows:r", "f", "v"});
  EXPECT_EQ(server::resp::Run::KindOf(*one.request), server::resp::Run::Kind::kFlushedPuts);
  server::resp::Run run;
  run.Add(std::move(one.request));
  EXPECT_TRUE(run.CanJoin(*other.request));
  EXPECT_FALSE(run.CanJoin(*quick.request));
  const Begun conditional(*core_, cursors_, "", {"SETNX", "safe:t", "v"});
  EXPECT_EQ(server::resp::Run::KindOf(*conditional.request), server::resp::Run::Kind::kPutsOnWorker)
      << "each is a write of its own";
}

TEST_F(RespPartsTest, PutsOfManyCellsAreLeftToAWorker) {
  MakeCore();
  Begun small(*core_, cursors_, "", PutOf(600, "HMSET"));
  const Begun other(*core_, cursors_, "", PutOf(600, "HMSET"));
  const Begun large(*core_, cursors_, "", PutOf(1'001, "HMSET"));
  const Begun counted(*core_, cursors_, "", PutOf(100));
  const Begun counted_long(*core_, cursors_, "", PutOf(101));
  EXPECT_EQ(server::resp::Run::KindOf(*counted.request), server::resp::Run::Kind::kPuts);
  EXPECT_EQ(server::resp::Run::KindOf(*counted_long.request), server::resp::Run::Kind::kPutsOnWorker)
      << "each column is looked for";
  EXPECT_EQ(server::resp::Run::KindOf(*small.request), server::resp::Run::Kind::kPuts);
  EXPECT_EQ(server::resp::Run::KindOf(*large.request), server::resp::Run::Kind::kPutsOnWorker);
  server::resp::Run run;
  run.Add(std::move(small.request));
  EXPECT_FALSE(run.CanJoin(*other.request)) << "both together have too many";
  EXPECT_FALSE(run.CanJoin(*large.request));
}

// ---- reads where connections are served ----

using RespReadsTest = RespTest;

TEST_F(RespReadsTest, WhatTakesLongIsNotDoneWhereConnectionsAreServed) {
  Router& router = served_->router();
  constexpr int kColumns = 10'000;
  for (const char* const row : {"full", "emptied"}) {
    for (int i = 0; i < kColumns; i += 1'000) {
      std::vector<std::string> names;
      for (int j = i; j < i + 1'000; ++j) names.push_back("column" + std::to_string(j));
      std::vector<CellWrite> cells;
      for (const std::string& name : names) cells.push_back({name, "v", 1});
      ASSERT_OK(router.PutRow("rows", row, cells, {}));
      if (std::string_view(row) == "emptied") {
        ASSERT_OK(router.DeleteRow("rows", row, {.columns = names}));
      }
    }
  }
  const auto too_long = [](const auto& result) { return resp::IsTooLongHere(result.status()); };
  const auto page = [&](const char* row, uint32_t limit, size_t named, bool here) {
    ReadOptions options{.limit = limit};
    if (named > 0) options.columns.emplace(named, "column1");
    return resp::PageOf(router, "rows", row, options, here);
  };
  ASSERT_OK_AND_ASSIGN(const Row some, page("full", 10, 0, /*here=*/true));
  EXPECT_EQ(some.items.size(), 10u);
  EXPECT_FALSE(some.marker.empty());
  EXPECT_TRUE(too_long(page("full", 5'000, 0, /*here=*/true)));
  EXPECT_TRUE(too_long(page("full", 10, 1'000, /*here=*/true)));
  EXPECT_TRUE(too_long(page("emptied", 10, 0, /*here=*/true)));
  EXPECT_EQ(page("full", 5'000, 0, /*here=*/false)->items.size(), 5'000u);
  EXPECT_TRUE(too_long(resp::HasCells(router, "rows", "emptied", std::nullopt, /*here=*/true)));
  EXPECT_FALSE(*resp::HasCells(router, "rows", "emptied", std::nullopt, /*here=*/false));
  EXPECT_TRUE(*resp::HasCells(router, "rows", "full", std::nullopt, /*here=*/true));
  EXPECT_TRUE(too_long(resp::TypeOfRow(router, "rows", "emptied", /*here=*/true)));
  EXPECT_EQ(*resp::TypeOfRow(router, "rows", "emptied", /*here=*/false), "none");
  // Workers do it, and clients see nothing of that.
  EXPECT_EQ(Do("EXISTS rows:emptied rows:full rows:emptied"), "(1)");
  EXPECT_EQ(Do("TYPE rows:emptied"), "none");
  EXPECT_EQ(Do("HLEN rows:full"), "(10000)");
  EXPECT_EQ(Do("HLEN rows:emptied"), "(0)");
}

}  // namespace
}  // namespace kvstore::testing
