#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "server/call/access.h"
#include "tests/hostile/raw_call.h"
#include "tests/support/kv_server.h"
#include "tests/support/sanitized.h"
#include "tests/support/temp_dir.h"

/// The memory that requests take before the server has checked them. The server is a process of its own, so
/// that its memory is not mixed with the client's.
namespace kvstore {
namespace {

using testing::CallRaw;
using testing::Field;
using testing::OwnChannel;
using testing::Repeated;

constexpr char kToken[] = "t-writer";
constexpr uint64_t kMiB = uint64_t{1} << 20;
/// The size of nearly the largest message that the server accepts.
constexpr size_t kLarge = size_t{19} << 20;
constexpr int kAtOnce = 6;

class IntakeTest : public ::testing::Test {
 protected:
  IntakeTest() {
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [{"name": "writer", "sha256": ")"
                                        << server::TokenDigest(kToken) << R"(", "rights": {"*": "admin"}}]})";
    std::ofstream(dir_ / "kv.json") << R"({"data": ")" << (dir_ / "store").string()
                                    << R"(", "server": {"tokens": ")" << (dir_ / "tokens.json").string()
                                    << R"("}})";
    server_ = std::make_unique<testing::KvServer>(
        KV_PROGRAM, std::vector<std::string>{"--config", (dir_ / "kv.json").string()});
    // Creates the dataset "rows". After this first call everything that calls need is in memory.
    EXPECT_EQ(Call("CreateDataset", Field(1, Field(1, "rows")), kToken).error_message(), "");
    before_ = MostBytes();
  }

  grpc::Status Call(const std::string& method, const std::string& request, const std::string& token = "",
                    grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    return CallRaw(OwnChannel(server_->address()), "/kvstore.v1.KVStore/" + method, request, token,
                   compression);
  }
  /// Makes several calls at a time, each over its own connection, and returns the code that all of them end
  /// with.
  std::vector<grpc::Status> CallAtOnce(const std::string& method, const std::string& request,
                                       const std::string& token) {
    std::vector<grpc::Status> ends(kAtOnce);
    std::vector<std::thread> threads;
    for (grpc::Status& end : ends) threads.emplace_back([&] { end = Call(method, request, token); });
    for (std::thread& thread : threads) thread.join();
    return ends;
  }

  const std::string& address() const { return server_->address(); }

  /// Expects that the server's largest memory has grown by at most so much since the test began.
  void ExpectGrownBy(uint64_t most) const {
    if (testing::kSanitized) return;
    EXPECT_LT(MostBytes() - before_, most);
  }

 private:
  uint64_t MostBytes() const {
    std::ifstream status("/proc/" + std::to_string(server_->process()) + "/status");
    std::string word;
    uint64_t kib = 0;
    while (status >> word && word != "VmHWM:") {
    }
    status >> kib;
    return kib << 10;
  }

  const testing::TempDir dir_;
  std::unique_ptr<testing::KvServer> server_;
  uint64_t before_ = 0;
};

TEST_F(IntakeTest, CompressedRequestsAreNotInflated) {
  const std::string zeros = Field(3, std::string(100 * kMiB, '\0'));
  EXPECT_EQ(Call("PutRow", zeros, "", GRPC_COMPRESS_GZIP).error_code(), grpc::UNIMPLEMENTED);
  EXPECT_EQ(Call("PutRow", zeros, kToken, GRPC_COMPRESS_DEFLATE).error_code(), grpc::UNIMPLEMENTED);
  ExpectGrownBy(32 * kMiB);
}

TEST_F(IntakeTest, NoRequestOfAStrangerIsRead) {
  // Ten million empty writes.
  const std::string writes = Repeated(std::string_view("\x12\x00", 2), kLarge / 2);
  for (const grpc::Status& end : CallAtOnce("PutRows", writes, "")) {
    EXPECT_EQ(end.error_code(), grpc::UNAUTHENTICATED) << end.error_message();
  }
  for (const char* method : {"ImportRows", "GetRow", "ScanRows", "Calls"}) {
    const grpc::Status end = Call(method, writes);
    EXPECT_EQ(end.error_code(), grpc::UNAUTHENTICATED) << method << ": " << end.error_message();
  }
  EXPECT_EQ(Call("GetServer", writes).error_message(), "");
  // The windows of the streams may be full.
  ExpectGrownBy(32 * kMiB);
}

TEST_F(IntakeTest, EntriesAreCountedBeforeAnythingIsBuiltFromThem) {
  const struct {
    const char* method;
    std::string request;
    const char* field;
  } cases[] = {
      {"PutRows", Repeated(std::string_view("\x12\x00", 2), kLarge / 2), "writes: more than 10000"},
      {"ImportRows", Repeated(std::string_view("\x12\x00", 2), kLarge / 2), "writes: more than 10000"},
      {"GetRows", Repeated(std::string_view("\x12\x00", 2), kLarge / 2), "reads: more than 10000"},
      {"DeleteRows", Repeated(std::string_view("\x12\x00", 2), kLarge / 2), "deletes: more than 10000"},
      {"GetObjects", Field(2, std::string(kLarge, 'i')), "ids: more than 10000"},
      {"Calls", Repeated(std::string_view("\x0a\x00", 2), kLarge / 2), "calls: more than 1000"},
      {"PutRow", Repeated(std::string_view("\x1a\x00", 2), kLarge / 2), "cells: more than 100000"},
      {"GetRow", Field(3, Field(1, Repeated(std::string_view("\x0a\x00", 2), kLarge / 2))),
       "names: more than 100000"},
      {"GetRow", Repeated(std::string_view("\x7a\x00", 2), kLarge / 2), "the message: more than 1000000"},
  };
  for (const auto& [method, request, field] : cases) {
    const grpc::Status end = Call(method, request, kToken);
    EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT) << method << ": " << end.error_message();
    EXPECT_NE(end.error_message().find(field), std::string::npos) << method << ": " << end.error_message();
  }
  for (const grpc::Status& end : CallAtOnce(cases[0].method, cases[0].request, kToken)) {
    EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT) << end.error_message();
  }
  // The bytes of the calls at the same time, twice.
  ExpectGrownBy(2 * kAtOnce * kLarge + 64 * kMiB);
}

TEST_F(IntakeTest, WhatDoesNotDecodeIsInvalid) {
  for (const char* method : {"GetRow", "PutRows", "ImportRows", "ScanRows", "Compact", "Calls"}) {
    const grpc::Status end = Call(method, "\x0a\x7f", kToken);
    EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT) << method << ": " << end.error_message();
  }
}

TEST_F(IntakeTest, TheHealthCheckReadsNothing) {
  const std::string service = Field(1, std::string(kLarge, 's'));
  EXPECT_EQ(CallRaw(OwnChannel(address()), "/grpc.health.v1.Health/Check", service).error_message(), "");
  ExpectGrownBy(8 * kMiB);
}

}  // namespace
}  // namespace kvstore
