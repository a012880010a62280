#include "tests/hostile/raw_call.h"
#include "tests/hostile/tenants.h"

/// Tests of what a token can do after it was removed from the list.
namespace kvstore {
namespace {

using testing::BytesOf;
using testing::Eventually;
using testing::OwnChannel;
using testing::TenantsTest;

class RevokedTest : public TenantsTest {
 protected:
  /// Removes alice from the list, and returns when the server has read it.
  void Revoke() {
    WriteTokens({"bob", "ops"});
    ASSERT_TRUE(Eventually([&] { return Get("alice").error_code() == grpc::UNAUTHENTICATED; }));
  }
};

TEST_F(RevokedTest, AnImportThatIsOpenWritesNothingMore) {
  Serve();
  grpc::ClientContext context;
  As(context, "alice");
  const auto stream = stub_->ImportRows(&context);
  v1::PutRowsRequest request;
  request.set_dataset("alice");
  v1::RowWrite& write = *request.add_writes();
  write.set_row("before");
  write.add_cells()->set_value("v");
  v1::PutRowsResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  Revoke();
  write.set_row("after");
  stream->Write(request);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNAUTHENTICATED);
  EXPECT_FALSE(served_->router().GetRow("alice", "before", {})->items.empty());
  EXPECT_TRUE(served_->router().GetRow("alice", "after", {})->items.empty());
}

TEST_F(RevokedTest, AStreamOfCallsThatIsOpenEnds) {
  Serve();
  grpc::ClientContext context;
  As(context, "alice");
  const auto stream = stub_->Calls(&context);
  v1::CallsRequest request;
  v1::Call& call = *request.add_calls();
  call.set_number(1);
  call.mutable_get_row()->set_dataset("alice");
  call.mutable_get_row()->set_row("r");
  v1::CallsResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  Revoke();
  stream->Write(request);
  while (stream->Read(&response)) EXPECT_EQ(response.answers_size(), 0);
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(RevokedTest, AScanThatIsOpenEnds) {
  Serve();
  PutRows("alice", 4'000, 4'000);
  grpc::ClientContext context;
  As(context, "alice");
  v1::ScanRowsRequest request;
  request.set_dataset("alice");
  const auto stream = stub_->ScanRows(&context, request);
  v1::ScanRowsResponse message;
  ASSERT_TRUE(stream->Read(&message));
  Revoke();
  int rows = message.rows_size();
  while (stream->Read(&message)) rows += message.rows_size();
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNAUTHENTICATED);
  EXPECT_LT(rows, 4'000);
}

TEST_F(RevokedTest, ARequestThatArrivesAfterwardsIsNotCarriedOut) {
  Serve();
  grpc::GenericStub stub(OwnChannel(served_->address()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  As(context, "alice");
  const auto call = stub.PrepareCall(&context, "/kvstore.v1.KVStore/PutRow", &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(wait());
  // The caller is known by now; its request is not there.
  ASSERT_TRUE(Eventually([&] { return served_->server().OpenCalls().find("PutRow") != std::string::npos; }));
  Revoke();
  v1::PutRowRequest request;
  request.set_dataset("alice");
  request.set_row("late");
  request.add_cells()->set_value("v");
  call->WriteLast(BytesOf(request.SerializeAsString()), grpc::WriteOptions(), nullptr);
  ASSERT_TRUE(wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(wait());
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_TRUE(served_->router().GetRow("alice", "late", {})->items.empty());
}

TEST_F(RevokedTest, AListOfTheSameTimeIsReadAsWell) {
  Serve();
  const auto written = std::filesystem::last_write_time(tokens_);
  ASSERT_EQ(Get("alice").error_code(), grpc::OK);
  // `cp -p` and `rsync -t` put a file in place that keeps an older time of writing.
  WriteTokens({"bob", "ops"});
  std::filesystem::last_write_time(tokens_, written);
  EXPECT_TRUE(Eventually([&] { return Get("alice").error_code() == grpc::UNAUTHENTICATED; }));
}

}  // namespace
}  // namespace kvstore
