#include <fmt/format.h>

#include <memory>
#include <string>

#include "bench/fleet/mysql_fixture.h"
#include "idgen/object_id.h"

/// kv bench mappings.
namespace kvstore::bench {
namespace {

using mysql::Sql;

constexpr uint64_t kPins = 100'000;
constexpr uint32_t kPage = 50;
constexpr uint64_t kFarPage = 1000;

uint64_t Pin(uint64_t i) { return (uint64_t{1} << 36) + i; }

}  // namespace

absl::StatusOr<Report> BenchMappings(const MySqlBenchOptions& options) {
  auto opened = MySqlFixture::Open(options);
  if (!opened.ok()) return opened.status();
  MySqlFixture& fixture = **opened;
  KVStore& store = fixture.store();
  Report report = NewReport("mappings", options);
  report.settings.emplace_back("pins", kPins);
  const std::string dataset = fixture.Create("mappings", Shape::kMappings);
  const uint32_t shard = fixture.ShardsOfFirstHost(ShardSpace::kId)[0];
  const uint64_t board = ObjectId::Make(shard, 2, 1)->value();
  RawConnection raw(fixture.FirstHost(ShardSpace::kId), fixture.options());
  const mysql::TableFamily family{.space = ShardSpace::kId, .name = dataset};
  const std::string table = mysql::Table{&family, shard}.QualifiedName();
  // The board's pins in order of their sequence, whose numbers have gaps as times have.
  for (uint64_t i = 0; i < kPins; i += 1000) {
    std::string insert = "INSERT INTO " + table + " VALUES ";
    for (uint64_t k = i; k < i + 1000; ++k) {
      insert += fmt::format("{}({}, {}, {})", k == i ? "" : ",", board, Pin(k), k * 10);
    }
    raw.Run(insert);
  }

  const auto read = [](sql::PreparedStatement& statement) {
    const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
    uint64_t sum = 0;
    uint64_t entries = 0;
    for (; rows->next(); ++entries) sum += rows->getUInt64(1) + rows->getUInt64(2);
    if (entries != kPage + 1 || sum == 0) Check(absl::InternalError("a page of another size"));
    return uint64_t{1};
  };
  const auto page = [&](const MappingListOptions& listing) {
    const auto entries = store.ListMapping(dataset, board, listing);
    Check(entries.status());
    if (entries->entries.size() != kPage) Check(absl::InternalError("a page of another size"));
    return uint64_t{1};
  };

  sql::PreparedStatement& first = raw.Prepare(Sql::kListAscending, ShardSpace::kId, dataset, shard);
  sql::PreparedStatement& after = raw.Prepare(Sql::kListAscendingAfter, ShardSpace::kId, dataset, shard);
  MappingListOptions far{.limit = kPage};
  {
    // The marker that leads to the page.
    const auto before = store.ListMapping(dataset, board, {.limit = kPage, .offset = (kFarPage - 2) * kPage});
    Check(before.status());
    far.marker = before->marker;
  }
  const MappingEntry last{.to = Pin((kFarPage - 1) * kPage - 1),
                          .sequence = ((kFarPage - 1) * kPage - 1) * 10};
  const Work read_first = [&](uint64_t) { return page({.limit = kPage}); };
  const Work read_far = [&](uint64_t) { return page(far); };
  Measure(report, options, "first_50_of_100000", 1, read_first, [&](uint64_t) {
    first.setUInt64(1, board);
    first.setUInt64(2, kPage + 1);
    first.setUInt64(3, 0);
    return read(first);
  });
  Measure(report, options, "page_1000_by_marker", 1, read_far, [&](uint64_t) {
    after.setUInt64(1, board);
    after.setUInt64(2, last.sequence);
    after.setUInt64(3, last.sequence);
    after.setUInt64(4, last.to);
    after.setUInt64(5, kPage + 1);
    after.setUInt64(6, 0);
    return read(after);
  });
  report.growth.push_back(CompareGrowth(
      "page_1_against_1000", {.rounds = options.rounds, .seconds = options.seconds}, read_first, read_far));
  Measure(
      report, options, "add_mapping_8", 8,
      [&](uint64_t i) {
        Check(store.AddMapping(dataset, ObjectId::Make(shard, 2, 2 + i % 1000)->value(), Pin(i), i));
        return uint64_t{1};
      },
      nullptr);
  fixture.AddCacheFigures(report);
  return report;
}

}  // namespace kvstore::bench
