#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "tests/server/served.h"
#include "tests/support/eventually.h"

namespace kvstore::testing {

/// Threads that write rows of the dataset "rows" while a server is drained, each until its first call fails
/// then.
class DrainedWriters {
 public:
  explicit DrainedWriters(Served& served) : served_(served) {}
  ~DrainedWriters() { Join(); }
  DrainedWriters(const DrainedWriters&) = delete;
  DrainedWriters& operator=(const DrainedWriters&) = delete;

  /// Starts one more, which writes by this client. The client must outlive it.
  void Start(KVStore& client) {
    Writer& writer = writers_.emplace_back("w" + std::to_string(writers_.size()));
    writer.thread = std::thread([this, &client, &writer] { Write(client, writer); });
  }

  /// Drains the server once each has written more than so many rows. Expects that each is told that its next
  /// write may not have been made, or was not, and that all that was acknowledged is there.
  void ExpectThatNothingIsLost(int rows) {
    for (const Writer& writer : writers_) EXPECT_TRUE(Eventually([&] { return writer.done > rows; }));
    drains_ = true;
    served_.server().Drain();
    Join();
    EXPECT_EQ(other_errors_, 0);
    for (const Writer& writer : writers_) {
      for (int i = 0; i < writer.done; ++i) {
        ASSERT_EQ(served_.router().GetRow("rows", writer.Row(i), {})->items.size(), 1u) << writer.Row(i);
      }
    }
  }

 private:
  struct Writer {
    explicit Writer(std::string of) : name(std::move(of)) {}
    std::string Row(int number) const { return name + "/" + std::to_string(number); }
    const std::string name;
    std::atomic<int> done{0};
    std::thread thread;
  };

  void Write(KVStore& client, Writer& writer) {
    while (true) {
      const CellWrite cell{"c", "v", 1};
      const absl::Status status = client.PutRow("rows", writer.Row(writer.done), {&cell, 1}, {}).status();
      if (status.ok()) {
        ++writer.done;
        continue;
      }
      // On a busy machine a deadline may pass at any time.
      if (absl::IsDeadlineExceeded(status) && !drains_) continue;
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) ++other_errors_;
      return;
    }
  }
  void Join() {
    for (Writer& writer : writers_) {
      if (writer.thread.joinable()) writer.thread.join();
    }
  }

  Served& served_;
  std::atomic<bool> drains_{false};
  std::atomic<int> other_errors_{0};
  std::list<Writer> writers_;
};

}  // namespace kvstore::testing
