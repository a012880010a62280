#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

/// Tests of what a server's log and its errors say about the values that clients send.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::TempDir;

/// `kv serve`, with a log file of its own that has all calls which fail, also by their arguments.
class ValuesTest : public ::testing::Test {
 protected:
  ValuesTest() {
    const std::string program = KV_PROGRAM;
    const std::string to = " >" + (dir_ / "out").string() + " 2>" + (dir_ / "log").string();
    process_ = testing::ForkProgram({"/bin/sh", "-c",
                                     "exec " + program + " --verbose --data " + (dir_ / "data").string() +
                                         " serve --listen " + address_ + to},
                                    (dir_ / "shell").string());
    stub_ = v1::KVStore::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    EXPECT_TRUE(Eventually([&] { return Text("out").find("serving on") != std::string::npos; }));
  }
  ~ValuesTest() override { testing::Kill(process_); }

  std::string Text(const std::string& file) const {
    std::ifstream in(dir_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Returns the error of an update with something that is not JSON.
  std::string Patch(const std::string& patch) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::UpdateObjectRequest request;
    request.set_dataset("docs");
    request.set_id(id_);
    request.set_merge_patch(patch);
    v1::UpdateObjectResponse response;
    const grpc::Status status = stub_->UpdateObject(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << status.error_message();
    return status.error_message();
  }
  grpc::StatusCode Create(const std::string& name) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::CreateDatasetRequest dataset;
    dataset.mutable_dataset()->set_name(name);
    dataset.mutable_dataset()->set_shape(v1::SHAPE_OBJECTS);
    v1::CreateDatasetResponse made;
    return stub_->CreateDataset(&context, dataset, &made).error_code();
  }
  void MakeObject() {
    ASSERT_EQ(Create("docs"), grpc::OK);
    grpc::ClientContext second;
    v1::CreateObjectRequest create;
    create.set_dataset("docs");
    create.set_data("{}");
    v1::CreateObjectResponse created;
    ASSERT_TRUE(stub_->CreateObject(&second, create, &created).ok());
    id_ = created.id();
  }

  const TempDir dir_;
  const std::string address_ = "127.0.0.1:" + std::to_string(testing::FreePort());
  pid_t process_ = -1;
  uint64_t id_ = 0;
  std::unique_ptr<v1::KVStore::Stub> stub_;
};

TEST_F(ValuesTest, NoValueIsInTheLogOrInAnErrorAndNoLineIsLong) {
  MakeObject();
  const std::string secret = "hunter2-very-secret";
  for (const std::string& patch :
       {R"({"password":")" + secret + "\xff\"}", R"({"password":)" + secret + "}",
        R"({"password":")" + secret, "{\"a\":1}\n" + secret, "{\"" + secret + "\n\":1}",
        R"({"n":1e999, "password":")" + secret + "\"}", R"({"n":)" + std::string(3'000'000, '7') + "e999}",
        "[\"" + secret + "\"]"}) {
    const std::string error = Patch(patch);
    EXPECT_EQ(error.find("hunter"), std::string::npos) << error;
    EXPECT_EQ(error.find("7777777777"), std::string::npos);
  }
  // The last line is there, so all of them are.
  ASSERT_TRUE(Eventually([&] {
    const std::string log = Text("log");
    size_t count = 0;
    for (size_t at = 0; (at = log.find("UpdateObject", at)) != std::string::npos; ++at) ++count;
    return count == 8;
  }));
  EXPECT_EQ(Text("log").find("hunter"), std::string::npos);
  EXPECT_EQ(Text("log").find("7777777777"), std::string::npos);
}

TEST_F(ValuesTest, ALongNameMakesNoLongLine) {
  EXPECT_EQ(Create(std::string(3'000'000, 'n')), grpc::INVALID_ARGUMENT);
  ASSERT_TRUE(Eventually([&] { return Text("log").find("CreateDataset") != std::string::npos; }));
  std::ifstream log(dir_ / "log");
  for (std::string line; std::getline(log, line);) EXPECT_LT(line.size(), 2'000u);
}

TEST_F(ValuesTest, TheLogGoesToStandardErrorAndNothingElseToStandardOutput) {
  EXPECT_EQ(Create("no such name"), grpc::INVALID_ARGUMENT);
  EXPECT_TRUE(Eventually([&] { return Text("log").find("CreateDataset") != std::string::npos; }));
  const std::string out = Text("out");
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
}

}  // namespace
}  // namespace kvstore
