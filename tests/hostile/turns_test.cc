#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/mutex.h"
#include "tests/hostile/connection.h"
#include "tests/hostile/tenants.h"

/// How long callers wait for a worker beside a caller with much work.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::TenantsTest;

/// Records the callers of its commands, in the order in which they are carried out. The first command lasts
/// until Begin.
class NotedCommands : public Migrations {
 public:
  absl::StatusOr<Json> Command(const Json& command) override {
    const bool first = [&] {
      const MutexLock lock(mutex_);
      callers_.push_back(command.at("who"));
      return callers_.size() == 1;
    }();
    if (first) begin_.WaitForNotification();
    return Json::object();
  }
  void Begin() { begin_.Notify(); }
  std::vector<std::string> callers() {
    const MutexLock lock(mutex_);
    return callers_;
  }

 private:
  absl::Notification begin_;
  Mutex mutex_;
  std::vector<std::string> callers_ ABSL_GUARDED_BY(mutex_);
};

class TurnsTest : public TenantsTest {
 protected:
  void Command(const std::string& name) {
    grpc::ClientContext context;
    As(context, name);
    v1::MigrateRequest request;
    request.set_dataset("bob");
    request.set_command(R"({"command":"status"})");
    v1::MigrateResponse response;
    const grpc::Status status = stub_->Migrate(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  NotedCommands commands_;
};

TEST_F(TurnsTest, ACallerWithMuchWorkDelaysAnotherByOnePieceOfIt) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.threads = 1;
  options.http = "127.0.0.1:0";
  Serve(options, &commands_);
  std::vector<std::thread> threads;
  // The only worker is busy, so it cannot answer calls for figures.
  const auto in_flight = [&] {
    const std::string page =
        testing::HttpGet(static_cast<uint16_t>(served_->server().http_port()), "/metrics");
    const std::string name = "\nkvstore_calls_in_flight ";
    const size_t at = page.find(name);
    return at == std::string::npos ? 0 : std::stoul(page.substr(at + name.size()));
  };
  const auto add = [&](const std::string& name, size_t calls) {
    for (size_t i = 0; i < calls; ++i) threads.emplace_back([this, name] { Command(name); });
    return Eventually([&] { return in_flight() == threads.size(); });
  };
  EXPECT_TRUE(add("ops", 100));
  EXPECT_TRUE(Eventually([&] { return commands_.callers().size() == 1; }));
  // Calls that were counted last may not be in their queue yet; the others are more than can be on their way
  // there.
  EXPECT_TRUE(add("bob", 20));
  commands_.Begin();
  for (std::thread& thread : threads) thread.join();
  const auto callers = commands_.callers();
  ASSERT_EQ(callers.size(), threads.size());
  // One command was running, and one was next.
  EXPECT_LE(std::find(callers.begin(), callers.end(), "bob") - callers.begin(), 2);
}

}  // namespace
}  // namespace kvstore
