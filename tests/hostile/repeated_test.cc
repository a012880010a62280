#include "tests/hostile/tenants.h"

/// A caller's writes can be retried, whatever other callers do meanwhile.
namespace kvstore {
namespace {

using testing::TenantsTest;

class RepeatedTest : public TenantsTest {
 protected:
  /// The instance of this server. An attempt that has it is a retry.
  v1::Attempt Attempt(const std::string& id) {
    grpc::ClientContext context;
    v1::GetServerResponse server;
    EXPECT_TRUE(stub_->GetServer(&context, {}, &server).ok());
    v1::Attempt attempt;
    attempt.set_request_id(id);
    attempt.set_instance(server.instance());
    attempt.set_sent_us(server.clock_us());
    return attempt;
  }
  grpc::Status Put(const std::string& name, const std::string& row, const v1::Attempt& attempt) {
    grpc::ClientContext context;
    As(context, name);
    v1::PutRowRequest request;
    request.set_dataset(name);
    request.set_row(row);
    request.add_cells()->set_value("v");
    *request.mutable_attempt() = attempt;
    v1::PutRowResponse response;
    return stub_->PutRow(&context, request, &response);
  }
  absl::StatusOr<v1::Object> Update(uint64_t id, const std::string& data, const v1::Attempt& attempt) {
    grpc::ClientContext context;
    As(context, "bob");
    v1::UpdateObjectRequest request;
    request.set_dataset("docs");
    request.set_id(id);
    request.set_data(data);
    *request.mutable_attempt() = attempt;
    v1::UpdateObjectResponse response;
    const grpc::Status status = stub_->UpdateObject(&context, request, &response);
    if (status.ok()) return response.object();
    const auto outcome = context.GetServerTrailingMetadata().find("kvstore-outcome");
    return absl::UnavailableError(std::string(outcome->second.data(), outcome->second.size()));
  }
  absl::StatusOr<bool> Remove(const v1::Attempt& attempt) {
    grpc::ClientContext context;
    As(context, "alice");
    v1::RemoveMappingRequest request;
    request.set_dataset("maps");
    request.set_from(1);
    request.set_to(2);
    *request.mutable_attempt() = attempt;
    v1::RemoveMappingResponse response;
    const grpc::Status status = stub_->RemoveMapping(&context, request, &response);
    if (!status.ok()) return absl::UnavailableError(status.error_message());
    return response.removed();
  }
};

std::string Document(size_t bytes, char fill) { return R"({"d":")" + std::string(bytes, fill) + R"("})"; }

TEST_F(RepeatedTest, ManyWritesOfOneCallerDoNotPushOutTheAnswersOfAnother) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.remembered = 20;
  Serve(options);
  ASSERT_OK(served_->router().AddMapping("maps", 1, 2, 3));
  const v1::Attempt attempt = Attempt("0123456789abcdef");
  ASSERT_TRUE(*Remove(attempt));
  for (int i = 10; i < 90; ++i) {
    ASSERT_TRUE(Put("bob", "r", Attempt("bob's attempt " + std::to_string(i))).ok());
  }
  EXPECT_TRUE(*Remove(attempt));
  // But many answers of its own do, and it is told so.
  for (int i = 10; i < 40; ++i) {
    ASSERT_TRUE(Put("alice", "r", Attempt("alice attempt " + std::to_string(i))).ok());
  }
  EXPECT_THAT(Remove(attempt), testing::FailsWith(absl::StatusCode::kUnavailable, "may or may not"));
}

TEST_F(RepeatedTest, LargeAnswersPushOutNothing) {
  Serve();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, served_->router().CreateObject("docs", "{}", {}));
  ASSERT_OK(served_->router().AddMapping("maps", 1, 2, 3));
  const v1::Attempt attempt = Attempt("0123456789abcdef");
  const v1::Attempt first = Attempt("the first of bob");
  ASSERT_TRUE(*Remove(attempt));
  ASSERT_TRUE(Put("bob", "r", first).ok());
  for (int i = 10; i < 30; ++i) {
    ASSERT_OK(Update(id, Document(4'000'000, 'x'), Attempt("bob's attempt " + std::to_string(i))).status());
  }
  EXPECT_TRUE(*Remove(attempt));
  EXPECT_TRUE(Put("bob", "r", first).ok()) << "its own are as large";
}

TEST_F(RepeatedTest, AnUpdateOfALargeObjectIsAnsweredAgainUnlessItWasChangedSince) {
  Serve();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, served_->router().CreateObject("docs", "{}", {}));
  const v1::Attempt attempt = Attempt("0123456789abcdef");
  const std::string large = Document(100'000, 'x');
  ASSERT_OK_AND_ASSIGN(const v1::Object updated, Update(id, large, attempt));
  ASSERT_OK_AND_ASSIGN(const v1::Object again, Update(id, large, attempt));
  EXPECT_EQ(again.data(), large);
  EXPECT_EQ(again.timestamp(), updated.timestamp());
  const std::string changed = Document(10, 'y');
  ASSERT_OK(Update(id, changed, Attempt("another attempt!")).status());
  EXPECT_THAT(Update(id, large, attempt), testing::FailsWith(absl::StatusCode::kUnavailable, "in-doubt"));
  EXPECT_EQ(served_->router().GetObject("docs", id, {})->data, changed) << "it was carried out again";
}

TEST_F(RepeatedTest, NobodyIsToldTheAnswerToACallOfAnotherKindOrCaller) {
  Serve();
  // Method, ID and name, written one after the other, are the same bytes for both callers.
  ASSERT_TRUE(Put("xbob", "r", Attempt("s123456789abcdef")).ok());
  grpc::ClientContext context;
  As(context, "bob");
  v1::PutRowsRequest request;
  request.set_dataset("bob");
  v1::RowWrite& write = *request.add_writes();
  write.set_row("mine");
  write.add_cells()->set_value("v");
  *request.mutable_attempt() = Attempt("123456789abcdefx");
  v1::PutRowsResponse response;
  ASSERT_TRUE(stub_->PutRows(&context, request, &response).ok());
  EXPECT_FALSE(served_->router().GetRow("bob", "mine", {})->items.empty());
}

}  // namespace
}  // namespace kvstore
