#include <nlohmann/json.hpp>

#include "tests/hostile/tenants.h"

/// Tests of what lists of migrations show to callers with few rights.
namespace kvstore {
namespace {

using testing::TenantsTest;

/// Two migrations. The problem of one quotes a broken host, in bytes that are not UTF-8.
class TwoMigrations : public Migrations {
 public:
  absl::StatusOr<Json> Command(const Json& command) override {
    Json alice = {{"dataset", "alice"}, {"problem", "host said \xff\xfe"}};
    if (command.value("command", "") != "list") return alice;
    return Json{{"migrations", {std::move(alice), Json{{"dataset", "bob"}}}}};
  }
};

class ListsTest : public TenantsTest {
 protected:
  /// Returns the datasets of the migrations that the caller is shown, or the name of the error.
  std::string List(const std::string& name, const std::string& dataset) {
    grpc::ClientContext context;
    As(context, name);
    v1::MigrateRequest request;
    request.set_dataset(dataset);
    request.set_command(R"({"command":"list"})");
    v1::MigrateResponse response;
    const grpc::Status status = stub_->Migrate(&context, request, &response);
    if (!status.ok()) return "error " + std::to_string(status.error_code());
    std::string names;
    const Json told = Json::parse(response.status());
    for (const Json& one : told["migrations"]) names += one["dataset"].get<std::string>() + " ";
    return names;
  }

  TwoMigrations migrations_;
};

TEST_F(ListsTest, MigrationsAreShownToWhoAdministersTheirDatasets) {
  Serve(testing::TestServerOptions(), &migrations_);
  EXPECT_EQ(List("bob", "bob"), "bob ");
  EXPECT_EQ(List("ops", "*"), "alice bob ");
  EXPECT_EQ(List("ops", "bob"), "alice bob ");
  const std::string denied = "error " + std::to_string(grpc::PERMISSION_DENIED);
  EXPECT_EQ(List("bob", "*"), denied);
  EXPECT_EQ(List("alice", "alice"), denied);
}

TEST_F(ListsTest, AStatusThatIsNotUtf8IsToldAndEndsNothing) {
  Serve(testing::TestServerOptions(), &migrations_);
  grpc::ClientContext context;
  As(context, "ops");
  v1::MigrateRequest request;
  request.set_dataset("alice");
  request.set_command(R"({"command":"status"})");
  v1::MigrateResponse response;
  ASSERT_TRUE(stub_->Migrate(&context, request, &response).ok());
  EXPECT_EQ(Json::parse(response.status())["problem"], "host said \xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace kvstore
