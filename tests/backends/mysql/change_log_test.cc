#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend_api/unit_key.h"
#include "backends/mysql/changes/host_seal.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/log_reader.h"
#include "backends/mysql/changes/page_builder.h"
#include "backends/mysql/changes/position_order.h"
#include "backends/mysql/driver/schema.h"
#include "idgen/object_id.h"
#include "tests/backends/mysql/made_log.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Binary logs without a server: what their events say, and what a place in them means.
namespace kvstore::testing {
namespace {

using namespace mysql;
using Kind = LogItem::Kind;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// Reads all items of a log.
absl::StatusOr<std::vector<LogItem>> ReadAll(const std::vector<std::string>& events,
                                             const LogVector& after = {}, bool checksums = false) {
  size_t at = 0;
  LogReader reader(
      [&]() -> absl::StatusOr<std::string_view> {
        return at < events.size() ? std::string_view(events[at++]) : std::string_view();
      },
      after,
      [](const LoggedTable& table) { return table.Shard(ShardSpace::kMod) || table.Shard(ShardSpace::kId); },
      checksums);
  std::vector<LogItem> items;
  for (;;) {
    auto item = reader.Next();
    if (!item.ok()) return item.status();
    if (item->kind == Kind::kEnd) return items;
    items.push_back(*std::move(item));
  }
}

TEST(RowEvents, OfARealServerDecode) {
  // MariaDB 10.11: INSERT INTO mod00003.rows (row_key, column_name, ts, value) VALUES ('behind', 'c', ...,
  // 'v').
  const std::string map = FromHex(
      "7a540a6b13010000003b0000007329000000001a00000000000100086d6f6430303030330004726f777300040f0f08fc050004"
      "000404"
      "00dde2d778");
  const std::string rows = FromHex(
      "7a540a6b17010000003a000000ad29000000001a00000000000100040ff00600626568696e6401006370fd5920a20100000100"
      "000076"
      "19f83474");
  const auto items = ReadAll({MadeGtid(0, 8) + "sums", map, rows}, {}, /*checksums=*/true);
  EXPECT_THAT(items, FailsWith(kDataLoss, "size is wrong")) << "the header says how long an event is";
  auto event = DecodeEvent(map);
  ASSERT_OK(event);
  event->body.remove_suffix(kChecksumBytes);
  const auto table = DecodeTableMap(*event);
  ASSERT_OK(table);
  EXPECT_EQ(table->database, "mod00003");
  EXPECT_EQ(table->name, "rows");
  EXPECT_EQ(table->Form(), TableForm::kRows);
  EXPECT_EQ(table->Shard(ShardSpace::kMod), 3u);
  EXPECT_EQ(table->Shard(ShardSpace::kId), std::nullopt);
  auto touched = DecodeEvent(rows);
  ASSERT_OK(touched);
  touched->body.remove_suffix(kChecksumBytes);
  EXPECT_EQ(*TableOfRows(*touched), table->number);
  std::vector<TouchedRow> found;
  ASSERT_OK(DecodeRows(*touched, *table, found));
  EXPECT_EQ(found, (std::vector<TouchedRow>{{.row = "behind", .column = "c"}}));
}

TEST(RowEvents, OnlyShardsDatabasesHaveShards) {
  for (const char* other : {"db1", "db000011x", "db", "mod00001_moved", "mysql", "db99999999999"}) {
    LoggedTable table;
    table.database = other;
    EXPECT_EQ(table.Shard(ShardSpace::kId), std::nullopt) << other;
    EXPECT_EQ(table.Shard(ShardSpace::kMod), std::nullopt) << other;
  }
}

TEST(LogReader, MakesTransactionsOfEvents) {
  const auto items =
      ReadAll({MadeGtid(1, 5, false, 100), MadeRowsTable(7, "mod00001", "events"),
               MadeRowsTable(8, "other", "events"), MadeRows(23, 8, 4, MadeCell("x", "y", 1, "v")),
               MadeRows(23, 7, 4, MadeCell("r", "c", 1, "v") + MadeCell("r", "d", 1, ""), 300),
               MadeRows(24, 7, 4, MadeCell("r", "c", 1, "v") + MadeCell("s", "c", 1, "w"), 400),
               MadeRows(25, 7, 4, MadeCell("r", "d", 1, "")), MadeXid(500), MadeGtid(1, 6, true),
               MadeQuery("mod00001", "DROP TABLE x"), MadeEvent(27, "binlog.000001")});
  ASSERT_OK(items);
  std::vector<Kind> kinds;
  for (const LogItem& item : *items) kinds.push_back(item.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kBegin, Kind::kRows, Kind::kRows, Kind::kRows, Kind::kCommit,
                                      Kind::kBegin, Kind::kStatement, Kind::kCommit, Kind::kIdle}));
  EXPECT_EQ((*items)[1].rows,
            (std::vector<TouchedRow>{{.row = "r", .column = "c"}, {.row = "r", .column = "d"}}));
  EXPECT_EQ((*items)[2].rows,
            (std::vector<TouchedRow>{{.row = "r", .column = "c"}, {.row = "s", .column = "c"}}));
  EXPECT_EQ((*items)[4].end.offset, 500u);
  EXPECT_EQ((*items)[4].gtid, (LogGtid{.domain = 1, .server = 1, .sequence = 5}));
  EXPECT_EQ((*items)[6].statement.text, "DROP TABLE x");
}

TEST(LogReader, RefusesWhatItCannotTell) {
  LogVector after;
  after.Add({.domain = 1, .server = 1, .sequence = 5});
  EXPECT_THAT(ReadAll({MadeGtid(1, 5)}, after), FailsWith(kOutOfRange, "gtid_strict_mode"));
  EXPECT_THAT(ReadAll({MadeGtid(1, 6), MadeEvent(166, "")}),
              FailsWith(kFailedPrecondition, "log_bin_compress"));
  EXPECT_THAT(ReadAll({MadeGtid(1, 6), MadeEvent(30, "")}), FailsWith(kFailedPrecondition, "type 30"));
  EXPECT_THAT(ReadAll({MadeEvent(26, "")}), FailsWith(kOutOfRange, "lost events"));
  EXPECT_THAT(ReadAll({MadeGtid(1, 6), MadeRows(23, 7, 4, "")}), FailsWith(kDataLoss, "does not name"));
}

TEST(LogReader, HostileBytesAreErrors) {
  const std::vector<std::string> good = {
      MadeGtid(1, 5), MadeRowsTable(7, "mod00001", "events"), MadeObjectsTable(9, "db00001", "pins"),
      MadeRows(24, 7, 4, MadeCell("r", "c", 1, "v") + MadeCell("s", "c", 1, "w")), MadeXid()};
  ASSERT_OK(ReadAll(good));
  Random random(Seed("hostile logs"));
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> events = good;
    std::string& event = events[random.Below(events.size())];
    if (random.OneIn(2)) event.resize(random.Below(event.size() + 1));
    for (uint64_t flips = random.Below(4); flips > 0 && !event.empty(); --flips) {
      event[random.Below(event.size())] = static_cast<char>(random.Next());
    }
    // Its size is right, so that what is in it is decoded.
    if (event.size() >= 13) {
      std::string size;
      AppendLittle(size, event.size(), 4);
      event.replace(9, 4, size);
    }
    ReadAll(events, {}, random.OneIn(2)).status().IgnoreError();
  }
}

TEST(PageBuilder, GoesOnInTheMiddleOfATransaction) {
  const DatasetTables tables{.space = ShardSpace::kMod, .name = "events", .shape = Shape::kRows};
  LoggedTable table;
  table.database = "mod00001";
  table.name = "events";
  table.types = "\x0f\x0f\x08\xfc";
  const LogGtid gtid{.domain = 1, .server = 1, .sequence = 5};
  // Two cells of a column are a unit.
  const std::vector<TouchedRow> rows = {{.row = "r", .column = "a"},
                                        {.row = "r", .column = "a"},
                                        {.row = "r", .column = "b"},
                                        {.row = "r", .column = "c"}};
  LogPlace place;
  std::vector<std::string> keys;
  for (int page = 0; page < 3; ++page) {
    PageBuilder builder(tables, place, 1, /*in_middle=*/false);
    builder.Begin(gtid, 1000);
    const auto added = builder.Add(table, rows);
    ASSERT_OK(added);
    if (*added == rows.size()) builder.Commit(gtid);
    ASSERT_EQ(builder.units().size(), 1u);
    keys.push_back(builder.units()[0].key);
    place = builder.units()[0].after;
  }
  EXPECT_EQ(keys,
            (std::vector<std::string>{RowUnitKey("r", "a"), RowUnitKey("r", "b"), RowUnitKey("r", "c")}));
  EXPECT_TRUE(place.done.Has(gtid));
  EXPECT_EQ(place.part, std::nullopt);
}

TEST(LogReader, ATransactionWithoutAnEndIsCompleteWhereTheNextBegins) {
  const std::vector<std::string> events = {MadeGtid(1, 5), MadeGtid(1, 6), MadeXid()};
  size_t next = 0;
  LogReader reader(
      [&]() -> absl::StatusOr<std::string_view> {
        return next < events.size() ? std::string_view(events[next++]) : std::string_view();
      },
      {}, [](const LoggedTable&) { return true; }, false);
  std::vector<std::pair<Kind, uint64_t>> told;
  for (;;) {
    const auto item = reader.Next();
    ASSERT_OK(item);
    if (item->kind == Kind::kEnd) break;
    told.emplace_back(item->kind, item->gtid.sequence);
  }
  EXPECT_EQ(told, (std::vector<std::pair<Kind, uint64_t>>{
                      {Kind::kBegin, 5}, {Kind::kCommit, 5}, {Kind::kBegin, 6}, {Kind::kCommit, 6}}));
}

TEST(PageBuilder, StatementsThatExchangeATableAreNoSilentGap) {
  const DatasetTables tables{.space = ShardSpace::kMod, .name = "events", .shape = Shape::kRows};
  const PageBuilder builder(tables, {}, 1, false);
  const auto check = [&](const std::string& text, bool standalone, const std::string& database = "") {
    return builder.Check({.database = database, .text = text}, standalone);
  };
  EXPECT_OK(check("CREATE TABLE `mod00001`.`events` (a INT)", true));
  EXPECT_OK(check("RENAME TABLE `mod00001`.`events` TO `mod00001_moved`.`events`", true));
  EXPECT_OK(check("TRUNCATE `mod00001`.`others`", true));
  EXPECT_THAT(check("CREATE DATABASE `mod00001` /* " + std::string(kCopyMark) + "3 */", true),
              FailsWith(kOutOfRange, "gtid_domain_id 3"));
  EXPECT_OK(check("CREATE DATABASE `db00001` /* " + std::string(kCopyMark) + "3 */", true));
  EXPECT_THAT(check("RENAME TABLE `mod00001`.`events` TO `mod00001`.`events$away`", true),
              FailsWith(kOutOfRange, "migrated"));
  EXPECT_THAT(check("TRUNCATE `mod00001`.`events`", true), FailsWith(kOutOfRange, "truncated"));
  EXPECT_THAT(check("/* by hand */ Truncate table events", true, "mod00001"),
              FailsWith(kOutOfRange, "truncated"));
  for (const char* const other : {"TRUNCATE shop.events", "TRUNCATE mod00001.old_events",
                                  "TRUNCATE db00001.events", "INSERT INTO shop.notes VALUES ('events')"}) {
    EXPECT_OK(check(other, true)) << other;
    EXPECT_OK(check(other, false, "shop")) << other;
  }
  EXPECT_THAT(check("DELETE FROM `mod00001`.`events`", false),
              FailsWith(kFailedPrecondition, "binlog_format"));
}

TEST(PageBuilder, HoldsWhereAShardWasPutAwayAndTheMapDoesNotKnow) {
  DatasetTables tables{.space = ShardSpace::kMod, .name = "events", .shape = Shape::kRows};
  std::vector<uint32_t> asked;
  tables.awaits_map = [&](uint32_t shard) {
    asked.push_back(shard);
    return shard == 2;
  };
  const PageBuilder builder(tables, {}, 1, false);
  EXPECT_TRUE(
      builder.Holds("RENAME TABLE `mod00001`.`events` TO `mod00001_moved`.`events`, `mod00002`.`events` TO "
                    "`mod00002_moved`.`events`"));
  EXPECT_EQ(asked, (std::vector<uint32_t>{1, 2}));
  asked.clear();
  EXPECT_FALSE(builder.Holds("RENAME TABLE `mod00002_moved`.`events` TO `mod00002`.`events`")) << "put back";
  EXPECT_FALSE(builder.Holds("RENAME TABLE `mod00002`.`events2` TO `mod00002_moved`.`events2`"));
  EXPECT_FALSE(builder.Holds("RENAME TABLE `db00002`.`events` TO `db00002_moved`.`events`"));
  EXPECT_FALSE(builder.Holds("RENAME TABLE `mod00002`.`a` TO `"));
  EXPECT_TRUE(asked.empty());
}

// ---- positions ----

TEST(LogVector, ParsesWhatServersSay) {
  const auto vector = LogVector::Parse("0-1-17,1-4-3");
  ASSERT_OK(vector);
  EXPECT_EQ(vector->ToString(), "0-1-17,1-4-3");
  EXPECT_TRUE(LogVector::Parse("")->last().empty());
  for (const char* bad : {"0-1", "x", "0-1-2x", "0-1-2,", "-1-2-3"}) {
    if (std::string_view(bad) == "0-1-2,") continue;  // as servers end no list, it does not matter
    EXPECT_THAT(LogVector::Parse(bad), FailsWith(kDataLoss, "")) << bad;
  }
}

ChangePosition::Pair PairOf(const char* master, const char* slave, uint32_t domain) {
  return {.master = master, .slave = slave, .domain = domain, .complete_ms = 5, .place = {}};
}

TEST(ChangePositions, TheirFormIsFixed) {
  ChangePosition position{.made_ms = 1000, .whole_ms = 800, .pairs = {PairOf("a", "b", 1)}};
  position.pairs[0].place = {.done = *LogVector::Parse("1-2-300"),
                             .part = LogGtid{.domain = 1, .server = 2, .sequence = 301},
                             .rows = 7,
                             .at_ms = 900};
  const std::string bytes = position.Encode();
  EXPECT_EQ(bytes, FromHex("4d01e807a00601016101620105840707020102ad020102ac0200"));
  const auto decoded = ChangePosition::Decode(bytes);
  ASSERT_OK(decoded);
  EXPECT_EQ(*decoded, position);
  for (size_t size = 2; size < bytes.size(); ++size) {
    EXPECT_THAT(ChangePosition::Decode(bytes.substr(0, size)), FailsWith(kInvalid, "no token"));
  }
  EXPECT_THAT(ChangePosition::Decode(std::string(20, '\0')), FailsWith(kOutOfRange, "another backend"));
}

TEST(ChangePositions, NobodyElseCanNameHosts) {
  ChangePosition position{.made_ms = 1, .whole_ms = 0, .pairs = {PairOf("a", "b", 1), PairOf("c", "d", 2)}};
  EXPECT_FALSE(HostsAreSealed(position, "secret"));
  position.seal = SealHosts(position.pairs, "secret");
  const auto decoded = ChangePosition::Decode(position.Encode());
  ASSERT_OK(decoded);
  EXPECT_TRUE(HostsAreSealed(*decoded, "secret"));
  EXPECT_FALSE(HostsAreSealed(*decoded, "guess"));
  position.pairs[1].place.at_ms = 7;
  EXPECT_TRUE(HostsAreSealed(position, "secret")) << "only the names are vouched for";
  position.pairs[1].master = "elsewhere";
  EXPECT_FALSE(HostsAreSealed(position, "secret"));
}

TEST(ChangePositions, PairsAreFoundAfterPromotionsAndReplacements) {
  const ChangePosition position{
      .made_ms = 1, .whole_ms = 0, .pairs = {PairOf("a", "b", 1), PairOf("c", "d", 2)}};
  using Found = std::vector<std::optional<size_t>>;
  const auto match = [&](std::vector<MappedPair> pairs) { return MatchPairs(position, pairs); };
  EXPECT_EQ(match({{{"a"}, {"b"}, 1}, {{"c"}, {"d"}, 2}}), (Found{0, 1}));
  EXPECT_EQ(match({{{"d"}, {"c"}, 2}, {{"b"}, {"a"}, 1}}), (Found{1, 0})) << "promoted";
  EXPECT_EQ(match({{{"b"}, {"x"}, 1}, {{"y"}, {"z"}, 2}}), (Found{0, 1})) << "replaced, one of them twice";
  EXPECT_EQ(match({{{"a"}, {"b"}, {}}, {{"e"}, {"f"}, 3}}), (Found{0, std::nullopt})) << "silent, and new";
  EXPECT_EQ(match({{{"c"}, {"d"}, 2}}), (Found{1})) << "all of a pair's shards have moved";
}

TEST(ChangePositions, ADomainThatAllHaveInCommonTellsNothing) {
  const ChangePosition position{
      .made_ms = 1, .whole_ms = 0, .pairs = {PairOf("a", "b", 0), PairOf("c", "d", 0)}};
  const std::vector<MappedPair> pairs = {{{"e"}, {"f"}, 0}};
  EXPECT_EQ(MatchPairs(position, pairs), (std::vector<std::optional<size_t>>{std::nullopt}));
}

TEST(ChangePositions, OneThatWasPassedIsKnown) {
  const auto at = [](uint64_t first, uint64_t second) {
    ChangePosition position;
    position.pairs = {{.master = "a:1", .slave = "a:2", .domain = 1},
                      {.master = "b:1", .slave = "b:2", .domain = 2}};
    position.pairs[0].place.done.Add({.domain = 1, .server = 1, .sequence = first});
    position.pairs[1].place.done.Add({.domain = 2, .server = 3, .sequence = second});
    return position;
  };
  EXPECT_TRUE(HasPassed(at(5, 7), at(4, 7)));
  EXPECT_TRUE(HasPassed(at(5, 7), at(4, 6)));
  EXPECT_FALSE(HasPassed(at(5, 7), at(5, 7))) << "the same";
  EXPECT_FALSE(HasPassed(at(5, 7), at(5, 8)));
  EXPECT_FALSE(HasPassed(at(5, 7), at(4, 8))) << "each is ahead somewhere";
  // Within a transaction, of which the rows count.
  ChangePosition within = at(5, 7);
  within.pairs[0].place.part = LogGtid{.domain = 1, .server = 1, .sequence = 6};
  within.pairs[0].place.rows = 3;
  ChangePosition further = within;
  further.pairs[0].place.rows = 4;
  EXPECT_TRUE(HasPassed(within, at(5, 7)));
  EXPECT_TRUE(HasPassed(further, within));
  EXPECT_FALSE(HasPassed(within, further));
  EXPECT_TRUE(HasPassed(at(6, 7), further));
  EXPECT_FALSE(HasPassed(further, at(6, 7)));
  // After a promotion, and with a pair that the other one does not know.
  ChangePosition promoted = at(4, 7);
  std::swap(promoted.pairs[0].master, promoted.pairs[0].slave);
  EXPECT_TRUE(HasPassed(at(5, 7), promoted));
  ChangePosition more = at(4, 7);
  more.pairs.push_back({.master = "c:1", .slave = "c:2", .domain = 3});
  EXPECT_FALSE(HasPassed(at(5, 7), more));
}

TEST(FilePlaces, AreInTheOrderOfTheLog) {
  const FilePlace early{"binlog.999999", 900};
  const FilePlace late{"binlog.1000000", 4};
  EXPECT_TRUE(early.IsAtOrBefore(late));
  EXPECT_FALSE(late.IsAtOrBefore(early));
  EXPECT_TRUE(early.IsAtOrBefore(early));
}

}  // namespace
}  // namespace kvstore::testing
