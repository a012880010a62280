#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "tests/server/gated_servers.h"

namespace kvstore::testing {

/// A stream of calls to the server of GatedServersTest, each message of which the test writes itself.
class GatedStreamTest : public GatedServersTest {
 protected:
  void SetUp() override {
    GatedServersTest::SetUp();
    stub_ = v1::KVStore::NewStub(
        grpc::CreateChannel(server_->addresses()[0], grpc::InsecureChannelCredentials()));
    stream_ = stub_->Calls(&context_);
  }
  void TearDown() override {
    stream_->WritesDone();
    v1::CallsResponse response;
    while (stream_->Read(&response)) {
    }
    EXPECT_TRUE(stream_->Finish().ok());
  }

  /// Reads so many answers, and returns them by the numbers of their calls.
  std::map<uint64_t, v1::Answer> ReadAnswers(size_t count) {
    std::map<uint64_t, v1::Answer> answers;
    v1::CallsResponse response;
    while (answers.size() < count && stream_->Read(&response)) {
      for (const v1::Answer& answer : response.answers()) answers[answer.number()] = answer;
    }
    return answers;
  }

  std::unique_ptr<v1::KVStore::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CallsRequest, v1::CallsResponse>> stream_;
};

}  // namespace kvstore::testing
