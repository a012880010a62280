#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/server/gated_servers.h"
#include "tests/support/status_matchers.h"

/// Reads that are long have workers of their own.
namespace kvstore {
namespace {

class LongReadsTest : public testing::GatedServersTest {};

TEST_F(LongReadsTest, WritesDoNotWaitBehindThem) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.threads = 1;
  Serve(options);
  absl::Notification begun;
  absl::Notification go_on;
  gate_->Set([&](std::string_view dataset, std::string_view) {
    if (dataset == "other" && !begun.HasBeenNotified()) {
      begun.Notify();
      go_on.WaitForNotification();
    }
    return absl::OkStatus();
  });
  std::thread reader([&] {
    const RowRead read{"r", {}};
    EXPECT_OK(store_->GetRows("other", {&read, 1}).status());
  });
  begun.WaitForNotification();
  // A batch is not carried out by the thread that receives it.
  const CellWrite cell{"c", "v", std::nullopt};
  const RowWrite write{"r", {&cell, 1}, {}};
  const auto results = store_->PutRows("migrating", {&write, 1});
  EXPECT_OK(results.ok() ? results->front().status() : results.status());
  go_on.Notify();
  reader.join();
}

}  // namespace
}  // namespace kvstore
