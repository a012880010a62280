#include "wire/packed_items.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/grpc/handlers.h"
#include "tests/server/served.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::Served;

std::vector<Item> AnyItems(testing::Random& random) {
  std::vector<Item> items(random.Below(5));
  for (Item& item : items) {
    item.column = random.HostileBytes(0, 4);
    item.cells.resize(1 + random.Below(4));
    for (Cell& cell : item.cells) cell = {random.Next(), random.HostileBytes(0, 40)};
  }
  return items;
}

v1::PackedItems Packed(const std::vector<Item>& items) {
  v1::PackedItems packed;
  wire::Pack(items, wire::SizeOf(items), packed);
  return packed;
}

TEST(PackedItems, AnyItemsComeBackIntoAnyMemory) {
  testing::Random random(testing::Seed("packed_items"));
  std::vector<Item> memory;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Item> items = AnyItems(random);
    v1::PackedItems message;
    ASSERT_TRUE(message.ParseFromString(Packed(items).SerializeAsString()));
    ASSERT_OK(wire::Unpack(message, memory));
    ASSERT_EQ(memory, items);
  }
}

TEST(PackedItems, WhatDoesNotFitTogetherIsRefused) {
  const v1::PackedItems good = Packed({{"a", {{1, "one"}, {2, "two"}}}, {"b", {{3, "three"}}}});
  std::vector<Item> items;
  ASSERT_OK(wire::Unpack(good, items));
  const auto refused = [&](const char* what, const auto& change) {
    v1::PackedItems bad = good;
    change(bad);
    EXPECT_THAT(wire::Unpack(bad, items), testing::FailsWith(absl::StatusCode::kInternal, "fit together"))
        << what;
  };
  refused("a name more", [](auto& bad) { bad.add_name_bytes(0); });
  refused("a column more", [](auto& bad) { bad.add_cells(0); });
  refused("a timestamp more", [](auto& bad) { bad.add_timestamps(0); });
  refused("a value more", [](auto& bad) { bad.add_value_bytes(0); });
  refused("a cell more that no column has", [](auto& bad) {
    bad.add_timestamps(0);
    bad.add_value_bytes(0);
  });
  refused("more cells than there are", [](auto& bad) { bad.set_cells(1, ~0u); });
  refused("fewer cells than there are", [](auto& bad) { bad.set_cells(1, 0); });
  refused("a column without cells", [](auto& bad) {
    bad.add_name_bytes(0);
    bad.add_cells(0);
  });
  refused("a name too long", [](auto& bad) { bad.set_name_bytes(1, ~0u); });
  refused("a value too long", [](auto& bad) { bad.set_value_bytes(2, ~0u); });
  refused("a byte more", [](auto& bad) { bad.mutable_bytes()->push_back('x'); });
  refused("a byte less", [](auto& bad) { bad.mutable_bytes()->pop_back(); });
}

TEST(PackedItems, ColumnsWithoutCellsGetNoRoom) {
  v1::PackedItems bad;
  for (int i = 0; i < 1'000'000; ++i) {
    bad.add_name_bytes(0);
    bad.add_cells(0);
  }
  std::vector<Item> items;
  EXPECT_THAT(wire::Unpack(bad, items), testing::FailsWith(absl::StatusCode::kInternal, "fit together"));
  EXPECT_EQ(items.capacity(), 0u);
}

TEST(PackedItems, NoBytesHarm) {
  testing::Random random(testing::Seed("packed_items bytes"));
  std::vector<Item> items;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = Packed(AnyItems(random)).SerializeAsString();
    for (uint64_t changes = 1 + random.Below(3); changes > 0 && !bytes.empty(); --changes) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    v1::PackedItems message;
    if (!message.ParseFromString(bytes)) continue;
    if (!wire::Unpack(message, items).ok()) continue;
    // The items that are read are those that were sent.
    std::vector<Item> again;
    ASSERT_OK(wire::Unpack(Packed(items), again));
    ASSERT_EQ(again, items);
    ASSERT_EQ(wire::SizeOf(items).bytes, message.bytes().size());
  }
}

TEST(PackedItems, TheClientAsksForThem) {
  v1::ReadOptions read;
  wire::ToWire(ReadOptions(), read);
  EXPECT_TRUE(read.packed());
  v1::ScanRowsRequest scan;
  wire::ToWire(ScanOptions(), scan);
  EXPECT_TRUE(scan.packed());
}

class PackedAnswers : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(store().CreateDataset({.name = "rows"}));
    const std::string value(50'000, 'v');
    for (const char* column : {"a", "b", "c", "d"}) {
      const CellWrite small{column, "1", 1};
      const CellWrite large{column, value, 1};
      ASSERT_OK(store().PutRow("rows", "small", {&small, 1}, {}).status());
      ASSERT_OK(store().PutRow("rows", "large", {&large, 1}, {}).status());
    }
    const CellWrite one{"a", "1", 1};
    ASSERT_OK(store().PutRow("rows", "short", {&one, 1}, {}).status());
  }
  KVStore& store() { return served_.router(); }

  v1::GetRowResponse Get(const std::string& row, bool packed) {
    v1::GetRowRequest request;
    request.set_dataset("rows");
    request.set_row(row);
    request.mutable_options()->set_packed(packed);
    v1::GetRowResponse response;
    EXPECT_OK(server::Handle(store(), request, response));
    return response;
  }

  Served served_;
};

TEST_F(PackedAnswers, AreForWhoAsksForThemAndForManySmallCells) {
  EXPECT_EQ(Get("small", false).items_size(), 4);
  EXPECT_FALSE(Get("small", false).has_packed());
  EXPECT_EQ(Get("small", true).items_size(), 0);
  EXPECT_EQ(Get("small", true).packed().bytes(), "a1b1c1d1");
  EXPECT_EQ(Get("large", true).items_size(), 4);
  EXPECT_EQ(Get("short", true).items_size(), 1);
  for (const char* row : {"large", "short", "none"}) EXPECT_FALSE(Get(row, true).has_packed()) << row;
}

TEST_F(PackedAnswers, OfBatchesAndScansAreForWhoAsksForThem) {
  for (const bool packed : {false, true}) {
    v1::GetRowsRequest batch;
    batch.set_dataset("rows");
    batch.add_reads()->set_row("small");
    batch.mutable_reads(0)->mutable_options()->set_packed(packed);
    v1::GetRowsResponse rows;
    ASSERT_OK(server::Produce(store(), batch)(rows, nullptr).status());
    ASSERT_EQ(rows.results_size(), 1);
    EXPECT_EQ(rows.results(0).has_packed(), packed);
    v1::ScanRowsRequest scan;
    scan.set_dataset("rows");
    scan.mutable_range()->set_start("small");
    scan.set_packed(packed);
    v1::ScanRowsResponse scanned;
    ASSERT_OK(server::Produce(store(), scan)(scanned, nullptr).status());
    ASSERT_EQ(scanned.rows_size(), 1);
    EXPECT_EQ(scanned.rows(0).has_packed(), packed);
  }
}

TEST_F(PackedAnswers, BatchesAndScansGiveWhatTheStoreGives) {
  const auto client = served_.Client();
  const std::vector<RowRead> reads = {
      {"small", {}}, {"none", {}}, {"large", {}}, {"short", {}}, {"small", {.versions = 5}}};
  ASSERT_OK_AND_ASSIGN(const auto want, store().GetRows("rows", reads));
  ASSERT_OK_AND_ASSIGN(const auto got, client->GetRows("rows", reads));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i]->items, want[i]->items) << i;
  ASSERT_OK_AND_ASSIGN(const auto ours, store().ScanRows("rows", {}, {}));
  ASSERT_OK_AND_ASSIGN(const auto theirs, client->ScanRows("rows", {}, {}));
  ScannedRow expected;
  ScannedRow row;
  while (*ours->Next(expected)) {
    ASSERT_TRUE(*theirs->Next(row));
    EXPECT_EQ(row.key, expected.key);
    EXPECT_EQ(row.items, expected.items);
  }
  EXPECT_FALSE(*theirs->Next(row));
}

}  // namespace
}  // namespace kvstore
