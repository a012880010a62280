#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_api/outcome.h"
#include "server/call/access.h"
#include "server/call/connections.h"
#include "tests/hostile/http2.h"
#include "tests/hostile/raw_call.h"
#include "tests/server/server_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"

/// Tests of what a client without a token can get out of a server.
namespace kvstore {
namespace {

namespace http2 = testing::http2;
using testing::CallRaw;
using testing::Connection;
using testing::Field;
using testing::OpenRaw;
using testing::OwnChannel;
using testing::Served;

class StrangerTest : public ::testing::Test {
 protected:
  StrangerTest() {
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [{"name": "a", "sha256": ")"
                                        << server::TokenDigest("t") << R"(", "rights": {"*": "admin"}}]})";
    ServerOptions options = testing::TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    served_ = std::make_unique<Served>(options);
    channel_ = OwnChannel(served_->address());
  }

  const testing::TempDir dir_;
  std::unique_ptr<Served> served_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(StrangerTest, EveryCallEndsBeforeItsFirstMessage) {
  for (const auto* service :
       {v1::KVStore::service_full_name(), "kvstore.v1.Reports", "kvstore.v1.Endpoints"}) {
    const auto* described = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    ASSERT_NE(described, nullptr) << service;
    for (int i = 0; i < described->method_count(); ++i) {
      const std::string method = std::string("/") + service + "/" + described->method(i)->name();
      for (const std::string token : {"", "another"}) {
        const grpc::Status end = OpenRaw(channel_, method, token);
        const auto expected = described->method(i)->name() == "GetServer" ? grpc::OK : grpc::UNAUTHENTICATED;
        EXPECT_EQ(end.error_code(), expected) << method << ": " << end.error_message();
      }
    }
  }
}

TEST_F(StrangerTest, ThereIsNoReflectionAndNoWatch) {
  EXPECT_EQ(OpenRaw(channel_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo").error_code(),
            grpc::UNIMPLEMENTED);
  EXPECT_EQ(OpenRaw(channel_, "/grpc.health.v1.Health/Watch").error_code(), grpc::UNIMPLEMENTED);
}

TEST_F(StrangerTest, CallsOfUnknownMethodsEndTheirConnection) {
  // Fewer bytes than a connection may send before it is suspected.
  constexpr uint32_t kCalls = 2 * server::Connections::kCalls;
  const Connection connection(served_->port());
  http2::Reader reader(connection);
  ASSERT_TRUE(connection.Send(http2::Preface()));
  http2::Reader::Received frame;
  uint32_t ended = 0;
  bool open = true;
  for (uint32_t i = 0; i < 10 * kCalls && open; ++i) {
    open = connection.Send(http2::OpenCall(2 * i + 1, "/kvstore.v1.KVStore/NoSuchMethod") +
                           http2::Frame(http2::kData, http2::kEndStream, 2 * i + 1, ""));
    // One at a time, so that none is refused because there are too many streams.
    do {
      open = open && reader.Next(frame);
    } while (open && !(frame.type == http2::kHeaders && (frame.flags & http2::kEndStream) != 0));
    if (open) ++ended;
  }
  EXPECT_FALSE(open) << "after " << ended << " calls";
  EXPECT_GE(ended + 1, server::Connections::kCalls);
}

TEST_F(StrangerTest, CallsOfUnknownMethodsByWhoIsKnownEndNothing) {
  for (uint32_t i = 0; i < 3 * server::Connections::kCalls; ++i) {
    ASSERT_EQ(CallRaw(channel_, "/kvstore.v1.KVStore/NoSuchMethod", "", "t").error_code(),
              grpc::UNIMPLEMENTED);
  }
}

TEST_F(StrangerTest, AWriteWithAWrongTokenIsNotInDoubt) {
  const auto client = served_->Client({.token = "another"});
  const absl::Status put = testing::PutCell(*client, "r", "v");
  EXPECT_EQ(put.code(), absl::StatusCode::kUnauthenticated) << put;
  EXPECT_FALSE(IsInDoubt(put)) << put;
}

TEST_F(StrangerTest, ANameThatIsNotUtf8WritesNothingButTheCallLog) {
  ::testing::internal::CaptureStderr();
  const grpc::Status end = CallRaw(channel_, "/kvstore.v1.KVStore/GetDataset", Field(1, "\xff\xfe"), "t");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT) << end.error_message();
  EXPECT_EQ(said.find("libprotobuf"), std::string::npos) << said;
}

TEST_F(StrangerTest, HandshakesThatFailWriteFewLines) {
  testing::Authority authority(dir_.path(), "authority");
  const testing::Authority::Files files = authority.Issue("server");
  ServerOptions options = testing::TestServerOptions();
  options.tokens = dir_ / "tokens.json";
  options.tls.cert = files.cert;
  options.tls.key = files.key;
  const Served served(options);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  constexpr int kHandshakes = 1'000;
  for (int i = 0; i < kHandshakes; ++i) {
    const Connection connection(served.port());
    connection.Send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(connection.ReadAll().find("HTTP/1.1 200"), std::string::npos);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "gRPC has written on its own";
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(log.find("gRPC: "), std::string::npos)
      << "an operator must be able to see why clients cannot connect";
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), kHandshakes / 2);
}

TEST_F(StrangerTest, AnswersThatAreNotTakenAreTakenBackAndKeepNobodyWhoIsKnownFromAsking) {
  // With a window of zero bytes nothing of an answer can be sent. These are twice as many calls as may be
  // open, so that all places are taken although some calls are refused, or were taken back already, on a
  // machine that is slow.
  constexpr size_t kConnections = 8;
  constexpr uint32_t kStreams = 250;
  std::vector<std::unique_ptr<Connection>> hostile;
  for (size_t i = 0; i < kConnections; ++i) {
    hostile.push_back(std::make_unique<Connection>(served_->port()));
    std::string sent = http2::Preface(0);
    for (uint32_t stream = 0; stream < kStreams; ++stream) {
      sent += http2::OpenCall(2 * stream + 1, "/kvstore.v1.KVStore/GetServer");
    }
    ASSERT_TRUE(hostile.back()->Send(sent));
  }
  const auto ask = [&](const std::string& token) {
    return CallRaw(channel_, "/kvstore.v1.KVStore/GetServer", "", token).error_code();
  };
  EXPECT_TRUE(testing::Eventually([&] { return ask("") == grpc::RESOURCE_EXHAUSTED; }));
  EXPECT_EQ(ask("t"), grpc::OK) << "who is known does not wait for strangers";
  for (const auto& connection : hostile) {
    // Refused calls end with their headers, those that are taken back with a reset.
    http2::Reader reader(*connection);
    http2::Reader::Received frame;
    std::set<uint32_t> ended;
    while (ended.size() < kStreams && reader.Next(frame)) {
      const bool last = frame.type == http2::kHeaders && (frame.flags & http2::kEndStream) != 0;
      if (last || frame.type == http2::kReset) ended.insert(frame.stream);
    }
    EXPECT_EQ(ended.size(), kStreams);
  }
  // A call's place is free a moment after its client was told that it has ended.
  EXPECT_TRUE(testing::Eventually([&] { return ask("") == grpc::OK; }));
}

}  // namespace
}  // namespace kvstore
