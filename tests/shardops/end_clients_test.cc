#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "shardops/host.h"
#include "tests/shardops/promote_fixture.h"

/// Tests of the errors that clients of a host get when their connections are ended.
namespace kvstore::testing {
namespace {

class EndClientsTest : public PromoteTest {
 protected:
  using Admin = std::unique_ptr<shardops::HostAdmin>;

  Admin Open() {
    auto opened = shardops::HostAdmin::Open(pair_.host_a(), pair_.fleet().access);
    EXPECT_OK(opened.status());
    return *std::move(opened);
  }
  static absl::Status Run(const Admin& client, const std::string& statement) {
    return client->WithConnection([&](mysql::Connection& connection) {
      connection.Run(statement);
      return absl::OkStatus();
    });
  }
  /// Ends all connections while a client runs a statement, and returns what that client gets.
  absl::Status EndDuring(const std::string& statement) {
    absl::Status answer;
    std::thread thread([&] { answer = Run(client_, statement); });
    EXPECT_TRUE(Eventually([&] {
      return absl::StrContains(pair_.a().Run("SELECT info FROM information_schema.processlist"),
                               statement + "\n");
    }));
    EXPECT_OK(admin_->EndClients().status());
    thread.join();
    return answer;
  }

  const Admin admin_ = Open();
  const Admin client_ = Open();
};

TEST_F(EndClientsTest, OneThatIsAboutToBeAnsweredIsAnswered) {
  // As a thread of the server that has committed, and gets no processor before it can say so.
  const Admin other = Open();
  ASSERT_OK(Run(other, "DO GET_LOCK('processor', 0)"));
  SetFailPointHook([&](std::string_view name) {
    if (name != "clients.awaited") return;
    EXPECT_OK(Run(other, "DO RELEASE_LOCK('processor')"));
  });
  EXPECT_OK(EndDuring("DO GET_LOCK('processor', 1000)"));
  SetFailPointHook(nullptr);
}

TEST_F(EndClientsTest, NobodyIsWaitedForWithoutAnEnd) { EXPECT_FALSE(EndDuring("DO SLEEP(1000)").ok()); }

TEST_F(EndClientsTest, ReadsAreNotWaitedFor) {
  std::atomic<bool> waited = false;
  SetFailPointHook([&](std::string_view name) {
    if (name == "clients.awaited") waited = true;
  });
  EXPECT_FALSE(EndDuring("SELECT SLEEP(1000)").ok());
  SetFailPointHook(nullptr);
  EXPECT_FALSE(waited);
}

}  // namespace
}  // namespace kvstore::testing
