#include "router/read_taps.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"

namespace kvstore {
namespace {

class Noted : public ReadTap {
 public:
  void Offer(std::vector<std::string> units) override { reads.push_back(std::move(units)); }
  std::vector<std::vector<std::string>> reads;
};

TEST(ReadTaps, TellWhatAReadHasReturnedOrAskedFor) {
  ReadTaps taps;
  const auto noted = std::make_shared<Noted>();
  const std::vector<Item> items = {{.column = "a"}, {.column = "b"}};
  taps.OnRow("events", "row", {}, items);
  taps.Open("events", ReadTaps::kAll, noted);
  taps.OnRow("others", "row", {}, items);
  EXPECT_TRUE(noted->reads.empty());
  taps.OnRow("events", "row", {}, items);
  taps.OnRow("events", "row", {.columns = {{"missing"}}}, {});
  taps.OnRow("events", "empty", {}, {});
  taps.OnObject("events", 7);
  taps.OnMapping("events", 7, {{.to = 8}, {.to = 9}});
  const std::vector<std::vector<std::string>> expected = {{RowUnitKey("row", "a"), RowUnitKey("row", "b")},
                                                          {RowUnitKey("row", "missing")},
                                                          {ObjectUnitKey(7)},
                                                          {MappingUnitKey(7, 8), MappingUnitKey(7, 9)}};
  EXPECT_EQ(noted->reads, expected);
  taps.OnRow("events", "wide", {}, std::vector<Item>(1000, Item{.column = "c"}));
  EXPECT_EQ(noted->reads.back().size(), ReadTaps::kMostUnits);
  taps.Close("events");
  taps.OnObject("events", 7);
  EXPECT_EQ(noted->reads.size(), 5u);
}

TEST(ReadTaps, TellOfAShare) {
  ReadTaps taps;
  const auto noted = std::make_shared<Noted>();
  taps.Open("events", ReadTaps::kAll / 10, noted);
  for (int i = 0; i < 10'000; ++i) taps.OnObject("events", 7);
  EXPECT_GT(noted->reads.size(), 500u);
  EXPECT_LT(noted->reads.size(), 2000u);
  taps.Open("events", 0, noted);
  noted->reads.clear();
  for (int i = 0; i < 10'000; ++i) taps.OnObject("events", 7);
  EXPECT_TRUE(noted->reads.empty());
}

}  // namespace
}  // namespace kvstore
