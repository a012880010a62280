#include "wire/packed_rows.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "server/grpc/handlers.h"
#include "tests/server/server_fixture.h"
#include "tests/support/random.h"
#include "wire/convert.h"

/// Rows of scans in one piece: their form, and scans by clients and servers of which only one knows it.
namespace kvstore::testing {
namespace {

using wire::PackedRows;
using wire::PackedRowsReader;

constexpr auto kInternal = absl::StatusCode::kInternal;

bool Same(const ScannedRow& a, const ScannedRow& b) {
  return a.key == b.key && a.items == b.items && a.continues == b.continues;
}

std::vector<ScannedRow> AnyRows(Random& random) {
  std::vector<ScannedRow> rows(random.Below(5));
  for (ScannedRow& row : rows) {
    row.key = random.HostileBytes(0, 6);
    row.items.resize(1 + random.Below(3));
    for (Item& item : row.items) {
      item.column = random.HostileBytes(0, 4);
      item.cells.resize(1 + random.Below(3));
      for (Cell& cell : item.cells) cell = {random.Next(), random.HostileBytes(0, 40)};
    }
  }
  if (!rows.empty()) rows.back().continues = random.Below(2) == 0;
  return rows;
}

PackedRows Pack(const std::vector<ScannedRow>& rows) {
  PackedRows packed;
  for (const ScannedRow& row : rows) wire::AddRow(row.key, row.items, packed);
  if (!rows.empty()) packed.set_continues(rows.back().continues);
  return packed;
}

/// Reads all rows, or up to an error. Each is read into the memory of the one before.
absl::Status Unpack(const PackedRows& packed, std::vector<ScannedRow>& rows) {
  rows.clear();
  ScannedRow row;
  PackedRowsReader reader(packed);
  while (reader.has_next()) {
    if (auto status = reader.Next(row); !status.ok()) {
      EXPECT_TRUE(reader.has_next());
      EXPECT_EQ(reader.Next(row), status);
      return status;
    }
    rows.push_back(row);
  }
  return absl::OkStatus();
}

TEST(PackedRowsForm, AnyRowsComeBack) {
  Random random(Seed("packed_rows"));
  std::vector<ScannedRow> read;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<ScannedRow> rows = AnyRows(random);
    PackedRows message;
    ASSERT_TRUE(message.ParseFromString(Pack(rows).SerializeAsString()));
    ASSERT_OK(Unpack(message, read));
    ASSERT_EQ(read.size(), rows.size());
    for (size_t at = 0; at < rows.size(); ++at) ASSERT_TRUE(Same(read[at], rows[at])) << at;
  }
}

TEST(PackedRowsForm, WhatDoesNotFitTogetherIsRefused) {
  const PackedRows good =
      Pack({{"r1", {{"a", {{1, "one"}}}}}, {"r2", {{"a", {{2, "two"}}}, {"b", {{3, "3"}}}}}});
  std::vector<ScannedRow> rows;
  ASSERT_OK(Unpack(good, rows));
  const auto refused = [&](const char* what, const auto& change) {
    PackedRows bad = good;
    change(bad);
    EXPECT_THAT(Unpack(bad, rows), FailsWith(kInternal, "fit together")) << what;
  };
  refused("a key more", [](auto& bad) { bad.add_key_bytes(0); });
  refused("a number of columns more", [](auto& bad) { bad.add_columns(1); });
  refused("a row more", [](auto& bad) {
    bad.add_key_bytes(0);
    bad.add_columns(1);
  });
  refused("a key too long", [](auto& bad) { bad.set_key_bytes(1, ~0u); });
  refused("a key too short", [](auto& bad) { bad.set_key_bytes(1, 1); });
  refused("more columns than there are", [](auto& bad) { bad.set_columns(1, ~0u); });
  refused("fewer columns than there are", [](auto& bad) { bad.set_columns(1, 1); });
  refused("a byte of keys more", [](auto& bad) { bad.mutable_keys()->push_back('x'); });
  refused("a byte of keys less", [](auto& bad) { bad.mutable_keys()->pop_back(); });
  refused("a byte of items more", [](auto& bad) { bad.mutable_items()->mutable_bytes()->push_back('x'); });
  refused("a byte of items less", [](auto& bad) { bad.mutable_items()->mutable_bytes()->pop_back(); });
  refused("a column without cells", [](auto& bad) { bad.mutable_items()->set_cells(2, 0); });
  refused("no items", [](auto& bad) { bad.clear_items(); });
  refused("no rows", [](auto& bad) {
    bad.clear_key_bytes();
    bad.clear_columns();
  });
}

TEST(PackedRowsForm, NoBytesHarm) {
  Random random(Seed("packed_rows bytes"));
  std::vector<ScannedRow> rows;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = Pack(AnyRows(random)).SerializeAsString();
    for (uint64_t changes = 1 + random.Below(3); changes > 0 && !bytes.empty(); --changes) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    PackedRows message;
    if (!message.ParseFromString(bytes) || !Unpack(message, rows).ok()) continue;
    std::vector<ScannedRow> again;
    ASSERT_OK(Unpack(Pack(rows), again));
    ASSERT_EQ(again.size(), rows.size());
    for (size_t at = 0; at < rows.size(); ++at) ASSERT_TRUE(Same(again[at], rows[at])) << at;
  }
}

class PackedScans : public ServerTest {
 protected:
  void SetUp() override { Serve(); }
  KVStore& router() { return served_->router(); }

  void Put(const std::string& row, const std::vector<std::string>& columns, const std::string& value) {
    std::vector<CellWrite> cells;
    for (const std::string& column : columns) cells.push_back({column, value, 1});
    ASSERT_OK(router().PutRow("rows", row, cells, {}).status());
  }
  /// Writes so many rows that a scan takes several messages.
  void Fill(int rows) {
    for (int i = 0; i < rows; ++i) Put(fmt::format("r{:04}", i), {"c"}, std::string(1000, 'v'));
  }
  v1::ScanRowsRequest Request(bool packed_rows) {
    v1::ScanRowsRequest request;
    request.set_dataset("rows");
    request.set_packed(true);
    request.set_packed_rows(packed_rows);
    return request;
  }
  /// Returns the first message of a scan that was made by hand.
  v1::ScanRowsResponse First(const v1::ScanRowsRequest& request) {
    v1::ScanRowsResponse message;
    EXPECT_OK(server::Produce(router(), request)(message, nullptr).status());
    return message;
  }
  /// Reads the rest of both cursors and expects the same of them.
  static void ExpectSame(RowCursor& cursor, RowCursor& expected) {
    ScannedRow row;
    ScannedRow want;
    for (;;) {
      ASSERT_OK_AND_ASSIGN(const bool wanted, expected.Next(want));
      ASSERT_OK_AND_ASSIGN(const bool more, cursor.Next(row));
      ASSERT_EQ(more, wanted) << want.key;
      if (!more) return;
      ASSERT_TRUE(Same(row, want)) << row.key << " " << want.key;
    }
  }
  /// Expects of a scan over the network what the store itself gives.
  void ExpectSameScan(const RowRange& range, const ScanOptions& options) {
    ASSERT_OK_AND_ASSIGN(const auto want, router().ScanRows("rows", range, options));
    ASSERT_OK_AND_ASSIGN(const auto got, store_->ScanRows("rows", range, options));
    ExpectSame(*got, *want);
  }
};

TEST_F(PackedScans, AreForClientsThatAskForThem) {
  Put("r1", {"c"}, "one");
  Put("r2", {"a", "b", "c", "d"}, "two");
  const v1::ScanRowsResponse old = First(Request(false));
  EXPECT_EQ(old.rows_size(), 2);
  EXPECT_FALSE(old.has_packed());
  const v1::ScanRowsResponse now = First(Request(true));
  EXPECT_EQ(now.rows_size(), 0);
  EXPECT_EQ(now.packed().keys(), "r1r2");
  EXPECT_EQ(now.packed().items().bytes(),
            "conea"
            "twobtwoctwodtwo");
  v1::ScanRowsRequest request;
  wire::ToWire(ScanOptions(), request);
  EXPECT_TRUE(request.packed_rows());
}

TEST_F(PackedScans, AMessageThatBeginsWithALargeRowIsNotPacked) {
  Put("large", {"c"}, std::string(300'000, 'v'));
  Put("small", {"c"}, "v");
  const v1::ScanRowsResponse message = First(Request(true));
  EXPECT_EQ(message.rows_size(), 1);
  EXPECT_FALSE(message.has_packed());
  ExpectSameScan({}, {});
}

TEST_F(PackedScans, GiveWhatTheStoreGives) {
  Fill(1500);
  Put("r0007", {"a", "b", "c"}, "more");
  for (int i = 0; i < 5; ++i) {
    const CellWrite cell{"c", "version", 10 + static_cast<uint64_t>(i)};
    ASSERT_OK(router().PutRow("rows", "r0009", {&cell, 1}, {}).status());
  }
  Put("r0100", {"c"}, std::string(600'000, 'l'));
  ASSERT_OK(router().DeleteRow("rows", "r0008", {}));
  ExpectSameScan({}, {});
  ExpectSameScan({.start = "r0005", .end = "r0700"}, {});
  ExpectSameScan({}, {.columns = std::vector<std::string>{"b", "none"}});
  ExpectSameScan({}, {.columns = std::vector<std::string>{"none"}});
  ExpectSameScan({}, {.versions = 3});
  ExpectSameScan({}, {.time_range = {5, 100}});
}

TEST_F(PackedScans, RowsThatAreExpiredAreNotInThem) {
  ASSERT_OK(router().CreateDataset({.name = "brief", .ttl_ms = 1'000'000}));
  for (const auto& [row, timestamp] : {std::pair{"old", std::optional<uint64_t>(1)}, {"new", std::nullopt}}) {
    const CellWrite cell{"c", "v", timestamp};
    ASSERT_OK(router().PutRow("brief", row, {&cell, 1}, {}).status());
  }
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("brief", {}, {}));
  ScannedRow row;
  ASSERT_TRUE(*cursor->Next(row));
  EXPECT_EQ(row.key, "new");
  EXPECT_FALSE(*cursor->Next(row));
}

TEST_F(PackedScans, ALargeRowComesInPieces) {
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back(fmt::format("c{:03}", i));
  Put("a", {"c"}, "before");
  Put("b", names, std::string(100, 'v'));
  Put("c", {"c"}, "behind");
  ExpectSameScan({}, {.max_bytes = 5'000});
  v1::ScanRowsRequest request = Request(true);
  request.set_max_bytes(5'000);
  const v1::ScanRowsResponse message = First(request);
  EXPECT_EQ(message.packed().keys(), "ab");
  EXPECT_TRUE(message.packed().continues());
}

TEST_F(PackedScans, ALimitCountsRows) {
  Fill(10);
  v1::ScanRowsRequest request = Request(true);
  request.set_limit(3);
  EXPECT_EQ(First(request).packed().key_bytes_size(), 3);
}

TEST_F(PackedScans, GoOnFromTheMarkerOfAnyRow) {
  Fill(600);
  for (const int rows : {1, 200, 300, 599, 600}) {
    ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {}, {}));
    ScannedRow row;
    for (int i = 0; i < rows; ++i) ASSERT_TRUE(*cursor->Next(row));
    ASSERT_OK_AND_ASSIGN(const auto rest, router().ScanRows("rows", {}, {.marker = cursor->marker()}));
    ExpectSame(*cursor, *rest);
  }
}

TEST_F(PackedScans, GoOnWhenTheServerComesBack) {
  Fill(3000);
  ASSERT_OK_AND_ASSIGN(const auto want, router().ScanRows("rows", {}, {}));
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {}, {}));
  ScannedRow row;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(*want->Next(row));
    ASSERT_TRUE(*cursor->Next(row));
  }
  served_->Restart();
  ExpectSame(*cursor, *want);
}

TEST_F(PackedScans, EndWithTheirCall) {
  Fill(3000);
  std::atomic<bool> cancelled{false};
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {}, {}));
  ScannedRow row;
  ASSERT_TRUE(*cursor->Next(row));
  cancelled = true;
  absl::Status status;
  for (int i = 1; i < 3000 && status.ok(); ++i) status = cursor->Next(row).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kCancelled, ""));
}

}  // namespace
}  // namespace kvstore::testing
