#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/resp/resp_client.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// Returns options of a server that also serves the Redis protocol, on a free port of the loopback interface.
inline ServerOptions RespOptions() {
  ServerOptions options = TestServerOptions();
  options.resp = "127.0.0.1:0";
  return options;
}

/// A server with the datasets "rows", which keeps all versions, "docs" and "links", and a client of it.
class RespTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve(RespOptions()); }

  void Serve(const ServerOptions& options) {
    client_.reset();
    served_ = std::make_unique<Served>(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "rows", .max_versions = 0}));
    ASSERT_OK(served_->router().CreateDataset({.name = "docs", .shape = Shape::kObjects}));
    ASSERT_OK(served_->router().CreateDataset({.name = "links", .shape = Shape::kMappings}));
    client_.emplace(address());
  }
  std::string address() const { return served_->server().resp_address(); }
  std::string Do(std::string_view line) { return client_->Do(line); }
  std::string Do(const std::vector<std::string>& words) { return client_->Do(words); }
  /// Returns the newest value of a column of a row of "rows", as the store has it.
  std::string Stored(const std::string& row, const std::string& column) {
    ReadOptions options;
    options.columns = {column};
    const auto read = served_->router().GetRow("rows", row, options);
    return read.ok() && !read->items.empty() ? read->items[0].cells[0].value : "(none)";
  }

  std::unique_ptr<Served> served_;
  std::optional<RespClient> client_;
};

}  // namespace kvstore::testing
