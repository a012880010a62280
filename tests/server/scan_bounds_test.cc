#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/server/server_fixture.h"

/// Scans that find nothing take turns with other calls.
namespace kvstore::testing {
namespace {

class ScanBoundsTest : public ServerTest {
 protected:
  /// Writes more cells than a server looks at for one message. Only the last one is in the time range of the
  /// scan.
  void Fill() {
    constexpr int kRows = 450;
    std::vector<std::string> names;
    for (int i = 0; i < 1000; ++i) names.push_back(fmt::format("c{:04}", i));
    for (int i = 0; i < kRows; ++i) {
      std::vector<CellWrite> cells;
      for (const std::string& name : names) cells.push_back({name, "v", 1});
      if (i == kRows - 1) cells.back().timestamp = 5;
      ASSERT_OK(served_->router().PutRow("rows", fmt::format("r{:03}", i), cells, {}).status());
    }
  }
  v1::ScanRowsRequest Request() {
    v1::ScanRowsRequest request;
    request.set_dataset("rows");
    request.set_start_timestamp(2);
    request.set_end_timestamp(10);
    return request;
  }
};

TEST_F(ScanBoundsTest, AScanThatFindsNothingIsAnsweredWithMessagesThatHaveAMarkerAlone) {
  Serve();
  Fill();
  const auto stub = Stub(served_->address());
  v1::ScanRowsRequest request = Request();
  std::vector<int> rows;
  {
    grpc::ClientContext context;
    const auto stream = stub->ScanRows(&context, request);
    for (v1::ScanRowsResponse message; stream->Read(&message);) {
      rows.push_back(message.rows_size());
      EXPECT_FALSE(message.marker().empty());
      if (rows.size() == 2) request.set_marker(message.marker());
    }
    EXPECT_TRUE(stream->Finish().ok());
  }
  ASSERT_GE(rows.size(), 3u);
  for (size_t i = 0; i + 1 < rows.size(); ++i) EXPECT_EQ(rows[i], 0) << i;
  EXPECT_EQ(rows.back(), 1);
  // A scan goes on from the marker of a message without rows, and has fewer cells left to look at.
  grpc::ClientContext context;
  const auto stream = stub->ScanRows(&context, request);
  size_t messages = 0;
  int found = 0;
  for (v1::ScanRowsResponse message; stream->Read(&message); ++messages) found += message.rows_size();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(found, 1);
  EXPECT_LT(messages, rows.size());
}

TEST_F(ScanBoundsTest, AClientSeesOnlyWhatIsFound) {
  Serve();
  Fill();
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {}, {.time_range = {2, 10}}));
  ScannedRow row;
  ASSERT_OK_AND_ASSIGN(bool more, cursor->Next(row));
  EXPECT_TRUE(more);
  EXPECT_EQ(row.key, "r449");
  ASSERT_OK_AND_ASSIGN(more, cursor->Next(row));
  EXPECT_FALSE(more);
}

}  // namespace
}  // namespace kvstore::testing
