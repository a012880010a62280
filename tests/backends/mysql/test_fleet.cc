#include "tests/backends/mysql/test_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "shardmap/map_source.h"

namespace kvstore::testing {
namespace {

std::unique_ptr<TestFleet> shared_fleet;

class SharedFleetEnvironment : public ::testing::Environment {
 public:
  explicit SharedFleetEnvironment(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
  void SetUp() override { shared_fleet = std::make_unique<TestFleet>(arguments_); }
  void TearDown() override { shared_fleet.reset(); }

 private:
  const std::vector<std::string> arguments_;
};

}  // namespace

TestFleet::TestFleet(const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  if (!OnMySql()) {
    all = {"--plugin-maturity=unknown", "--plugin-load-add=ha_rocksdb", "--rocksdb-large-prefix=1"};
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  const bool logs = std::find(all.begin(), all.end(), "--log-bin=binlog") != all.end();
  for (size_t i = 0; i < servers_.size(); ++i) {
    std::vector<std::string> of_one = all;
    if (logs) of_one.push_back("--gtid-domain-id=" + std::to_string(i + 1));
    servers_.at(i) = std::make_unique<MariaDbServer>(of_one);
  }
  WriteMaps(server(0).address(), server(1).address());
}

mysql::MySqlOptions TestFleet::Options() {
  mysql::MySqlOptions options{.user = "root"};
  options.pool.connect_timeout_s = 2;
  options.pool.read_timeout_s = 10;
  options.pool.write_timeout_s = 10;
  options.breaker.min_pause_ms = 50;
  options.breaker.max_pause_ms = 200;
  options.purge_cells_per_s = 0;
  return options;
}

void TestFleet::WriteMaps(const std::string& first, const std::string& second) {
  for (const char* name : {"id.json", "mod.json"}) {
    const auto next = dir_ / (std::string(name) + ".next");
    std::ofstream(next) << fmt::format(
        R"([{{"range": [0, {}], "master": "{}", "slave": "none1"}}, {{"range": [{}, {}], "master": "{}", "slave": "none2"}}])",
        kShards / 2 - 1, first, kShards / 2, kShards - 1, second);
    std::filesystem::rename(next, dir_ / name);
  }
}

absl::StatusOr<std::unique_ptr<MySqlBackend>> TestFleet::OpenAt(const std::string& first,
                                                                const std::string& second,
                                                                const mysql::MySqlOptions& options) {
  WriteMaps(first, second);
  return OpenAsMapped(options);
}

mysql::MapSources TestFleet::Sources() const {
  return {.id = OpenFileSource(dir_ / "id.json"), .mod = OpenFileSource(dir_ / "mod.json")};
}

absl::StatusOr<std::unique_ptr<MySqlBackend>> TestFleet::OpenAsMapped(const mysql::MySqlOptions& options) {
  return MySqlBackend::Open(Sources(), options, nullptr, Tables());
}

absl::StatusOr<std::unique_ptr<MySqlBackend>> TestFleet::Open(const mysql::MySqlOptions& options) {
  return OpenAt(server(0).address(), server(1).address(), options);
}

void TestFleet::Clear() {
  for (const auto& server : servers_) {
    const std::string drops = server->Run(
        "SELECT CONCAT('DROP TABLE `', table_schema, '`.`', table_name, '`;') FROM information_schema.tables "
        "WHERE (table_schema LIKE 'db%' OR table_schema LIKE 'mod%') AND table_name <> 'kv$clock'");
    server->Run(drops);
  }
  {
    const MutexLock lock(notes_->mutex);
    notes_->made.clear();
  }
  const auto backend = Open();
  if (!backend.ok()) throw std::runtime_error(std::string(backend.status().message()));
  const absl::Status made = (*backend)->Init(nullptr, nullptr);
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
}

bool ShareFleet(const std::vector<std::string>& arguments) {
  return ::testing::AddGlobalTestEnvironment(new SharedFleetEnvironment(arguments)) != nullptr;
}

TestFleet& SharedFleet() { return *shared_fleet; }

void SlowDownMyRocks(const MariaDbServer& server) {
  server.Run(
      "CREATE DATABASE pins; CREATE TABLE pins.big (id INT PRIMARY KEY, v LONGBLOB) ENGINE=ROCKSDB; SET "
      "GLOBAL "
      "rocksdb_force_flush_memtable_now = 1; SET GLOBAL rocksdb_pause_background_work = 1");
  for (int i = 0; i < 14; ++i) {
    server.Run(fmt::format("INSERT INTO pins.big VALUES ({}, REPEAT('x', 40000))", i));
  }
  server.Run("SET GLOBAL rocksdb_delayed_write_rate = 4096");
}

Opened::Opened(DatasetSpec wanted, const mysql::MySqlOptions& options) : spec(std::move(wanted)) {
  SharedFleet().Clear();
  spec.backend = "mysql";
  spec.incarnation = 1;
  backend = *SharedFleet().Open(options);
  EXPECT_OK(backend->CreateDataset(spec));
  if (spec.shape == Shape::kRows) rows = *backend->OpenRows(spec);
  if (spec.shape == Shape::kObjects) objects = *backend->OpenObjects(spec);
  if (spec.shape == Shape::kMappings) mappings = *backend->OpenMappings(spec);
}

std::vector<std::string> StorageEngines() {
  if (OnMySql()) return {"innodb"};
  return {"innodb", "myrocks"};
}

std::vector<UnderTest> OnEachEngine() {
  std::vector<UnderTest> all;
  for (const std::string& engine : StorageEngines()) all.push_back(MySql(engine));
  return all;
}

int CountTables(const std::string& name) {
  int count = 0;
  for (size_t i = 0; i < 2; ++i) {
    count += std::stoi(SharedFleet().server(i).Run(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema REGEXP '^(db|mod)[0-9]' AND "
        "table_name = '" +
        name + "'"));
  }
  return count;
}

std::string Numbers(uint64_t first, uint64_t last) {
  if (!OnMySql()) return fmt::format("seq_{}_to_{}", first, last);
  return fmt::format(
      "(WITH RECURSIVE numbers AS (SELECT {} AS seq UNION ALL SELECT seq + 1 FROM numbers WHERE seq < {}) "
      "SELECT seq FROM numbers) AS numbers",
      first, last);
}

uint64_t SumOfStatus(const MariaDbServer& server, const std::string& names) {
  std::istringstream rows(server.Run("SHOW GLOBAL STATUS WHERE Variable_name IN (" + names + ")"));
  uint64_t sum = 0;
  std::string name;
  for (uint64_t value = 0; rows >> name >> value;) sum += value;
  return sum;
}

UnderTest MySql(const std::string& engine) {
  return {
      .name = engine,
      .open = [](const std::filesystem::path&,
                 std::span<const DatasetSpec> known) -> absl::StatusOr<std::unique_ptr<Backend>> {
        if (known.empty()) SharedFleet().Clear();
        return SharedFleet().Open();
      },
      .disturb =
          [engine](Backend& backend, const DatasetSpec& spec, Random& random) {
            if (engine == "myrocks") {
              SharedFleet().server(random.Below(2)).Run("SET GLOBAL rocksdb_force_flush_memtable_now = 1");
            }
            // InnoDB rearranges its files by itself; what KVStore does in addition is the purge.
            if (spec.shape != Shape::kRows) return;
            EXPECT_OK(backend.Reclaim(spec, nullptr));
          },
      .ordered = false,
      .engine = engine,
      .operations = 10'000,
  };
}

UnderTest MySqlOnFirstUse() {
  UnderTest under_test = MySql("innodb");
  under_test.name = "first_use";
  under_test.open = [](const std::filesystem::path&,
                       std::span<const DatasetSpec> known) -> absl::StatusOr<std::unique_ptr<Backend>> {
    if (known.empty()) SharedFleet().Clear();
    auto options = TestFleet::Options();
    options.tables_on_first_use = true;
    return SharedFleet().Open(options);
  };
  return under_test;
}

}  // namespace kvstore::testing
