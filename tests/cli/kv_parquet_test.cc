#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/bytes_json.h"
#include "tests/cli/kv_program.h"
#include "tests/support/kv_server.h"
#include "tests/support/random.h"

/// kv export and kv import with --format parquet, and kv report load of Parquet.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KvParquet : public KvProgram {
 protected:
  void SetUp() override {
    if (::access(KV_PARQUET_PROGRAM, X_OK) != 0) {
      GTEST_SKIP() << "kv-parquet is not built; ./dev parquet gets Arrow and builds it";
    }
    fs::create_directory(dir_ / "tmp");
    ::setenv("TMPDIR", (dir_ / "tmp").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    ::unsetenv("KV_PARQUET");
    if (IsSkipped()) return;
    EXPECT_TRUE(fs::is_empty(dir_ / "tmp")) << "a temporary file was left";
  }

  std::string Folder() const { return (dir_ / "exports").string(); }
  /// Runs kv without a store.
  static Output Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KV_PROGRAM);
    return RunProgram(arguments);
  }
  Json OkJson(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.emplace_back("--json");
    return Json::parse(Ok(arguments, input), nullptr, false);
  }
  /// Exports a dataset as Parquet, and returns what --json says.
  Json Export(const std::string& dataset, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"export", dataset, "--format", "parquet", "--to", Folder()});
    return OkJson(options);
  }
  /// The file of an export that has one.
  static fs::path FileOf(const Json& exported) {
    return *fs::directory_iterator(exported["data"].get<std::string>());
  }
  /// Has PyArrow and DuckDB read an export, and compare it with the dataset as JSON lines.
  void ReadBack(const Json& exported, const std::string& dataset, size_t rows) const {
    if (::access(KV_ARROW_PYTHON, X_OK) != 0) {
      GTEST_SKIP() << "PyArrow and DuckDB are not installed; ./dev parquet installs them";
    }
    const std::string lines = File("lines.jsonl", Ok({"export", dataset}));
    const Output output =
        RunProgram({KV_ARROW_PYTHON, KV_READ_BACK, exported["url"].get<std::string>(), lines});
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_EQ(output.out, std::to_string(rows) + " rows are the same\n");
  }

  /// Puts cells of any bytes, some in several versions, into a new dataset; returns how many there are.
  size_t MakeRows(const std::string& dataset) const {
    Random random(Seed(dataset));
    Ok({"dataset", "create", dataset, "--max-versions", "0"});
    std::string lines;
    size_t cells = 0;
    for (int i = 0; i < 400; ++i) {
      Json items = Json::array();
      for (uint64_t version = 1 + random.Below(4); version > 0; --version) {
        items.push_back({{"column", BytesToJson("c" + random.HostileBytes(0, 4) + std::to_string(version))},
                         {"timestamp", 1'700'000'000'000 + version},
                         {"value", BytesToJson(random.HostileBytes(0, 40))}});
        ++cells;
      }
      lines +=
          Json{{"row", BytesToJson(std::to_string(i) + random.HostileBytes(0, 8))}, {"items", items}}.dump() +
          "\n";
    }
    Ok({"import", dataset}, lines);
    return cells;
  }
};

TEST_F(KvParquet, RowsComeBackAsTheyWere) {
  const size_t cells = MakeRows("events");
  const Json exported = Export("events");
  EXPECT_EQ(exported["rows"], cells);
  EXPECT_EQ(exported["form"], "long");
  EXPECT_EQ(exported["snapshot"], true);
  const std::string folder = exported["url"];
  Ok({"dataset", "create", "copy", "--max-versions", "0"});
  Ok({"import", "copy", "--format", "parquet", folder});
  EXPECT_EQ(Ok({"export", "copy"}), Ok({"export", "events"}));
  Ok({"import", "copy", "--format", "parquet", folder, "--verify"});
  EXPECT_EQ(OkJson({"import", "copy", "--format", "parquet", folder + "/", "--only-changes"})["same"], 400);
  // A file alone has all that is needed, too.
  Ok({"dataset", "create", "again", "--max-versions", "0"});
  for (const auto& file : fs::directory_iterator(exported["data"].get<std::string>())) {
    Ok({"import", "again", "--format", "parquet", file.path().string()});
  }
  EXPECT_EQ(Ok({"export", "again"}), Ok({"export", "events"}));
}

TEST_F(KvParquet, WhatHasChangedSinceAnExport) {
  Ok({"dataset", "create", "events", "--keep-changes-ms", "1d"});
  Ok({"put", "events", "a", "x=1"});
  Export("events", {"--token", "first"});
  Ok({"put", "events", "b", "x=2"});
  const Json second = Export("events", {"--token", "second", "--since", "first"});
  EXPECT_EQ(second["rows"], 1);
  EXPECT_EQ(second["since"], "first");
  EXPECT_EQ(second["snapshot"], false);
  EXPECT_EQ(Export("events", {"--token", "second", "--since", "first"})["repeated"], true);
  const auto refused = [&](std::vector<std::string> options, const std::string& error) {
    options.insert(options.begin(), {"export", "events", "--format", "parquet", "--to", Folder()});
    Fails(options, error);
  };
  refused({"--token", "second"}, "was used for an export of dataset 'events' with other options");
  refused({"--since", "none"}, "NOT_FOUND: since: there is no export 'none'");
  refused({"--since", "first", "--columns", "x"}, "leave the columns out");
  Fails({"import", "events", "--format", "parquet", second["url"].get<std::string>()},
        "is an export of what has changed since 'first', and only whole exports are imported");
  Fails({"import", "events", "--format", "parquet", FileOf(second).string()},
        "of what has changed since another one, 'first'");
  Ok({"dataset", "alter", "events", "--keep-changes-ms", "0"});
  refused({"--since", "first"}, "are not kept");
  Ok({"dataset", "alter", "events", "--keep-changes-ms", "1d"});
  refused({"--since", "first"},
          "OUT_OF_RANGE: since: some of what was written since export 'first' is not kept");
  Ok({"dataset", "create", "without"});
  Export("without", {"--token", "third"});
  Fails({"export", "without", "--format", "parquet", "--to", Folder(), "--since", "third"},
        "since: export 'third' has no token of changes");
}

TEST_F(KvParquet, RowsAreReadByOthers) {
  const size_t cells = MakeRows("events");
  ReadBack(Export("events"), "events", cells);
}

TEST_F(KvParquet, WideRowsComeBackAndAreReadByOthers) {
  Ok({"dataset", "create", "users"});
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    Json items = Json::array({{{"column", "name"}, {"value", "user " + std::to_string(i)}}});
    if (i % 2 == 0) items.push_back({{"column", "clicks"}, {"value", std::to_string(i * 1000)}});
    if (i % 3 == 0) items.push_back({{"column", "other"}, {"value", "x"}});
    lines += Json{{"row", "user:" + std::to_string(1000 + i)}, {"items", items}}.dump() + "\n";
  }
  Ok({"import", "users"}, lines);
  const Json exported = Export("users", {"--columns", "name:string,clicks:int64", "--text"});
  EXPECT_EQ(exported["form"], "wide");
  EXPECT_EQ(exported["rows"], 300);
  const std::string folder = exported["url"];
  Ok({"import", "users", "--format", "parquet", folder, "--verify"});
  Ok({"dataset", "create", "copy"});
  Ok({"import", "copy", "--format", "parquet", folder});
  const std::string once = Ok({"export", "copy"});
  Ok({"import", "copy", "--format", "parquet", folder});
  EXPECT_EQ(Ok({"export", "copy"}), once) << "an import that is repeated has written other cells";
  EXPECT_EQ(Ok({"get", "copy", "user:1002", "clicks", "--json"}).find("2000") != std::string::npos, true);
  EXPECT_EQ(OkJson({"import", "users", "--format", "parquet", folder, "--only-changes"})["same"], 300);
  ReadBack(exported, "users", 300);
}

TEST_F(KvParquet, ObjectsComeBackAndAreReadByOthers) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  std::string lines;
  for (int i = 0; i < 50; ++i) {
    lines += R"({"data":{"title":"pin )" + std::to_string(i) + R"(","likes":)" + std::to_string(i) + "}}\n";
  }
  Ok({"import", "pins"}, lines);
  const std::string before = Ok({"export", "pins"});
  const Json exported = Export("pins", {"--columns", "title,likes:int64"});
  EXPECT_EQ(exported["rows"], 50);
  ReadBack(exported, "pins", 50);
  const std::string id = Json::parse(before.substr(0, before.find('\n')))["id"];
  Ok({"object", "update", "pins", id, R"({"title":"changed"})"});
  Ok({"import", "pins", "--format", "parquet", exported["url"]});
  EXPECT_EQ(Ok({"export", "pins"}), before);
}

TEST_F(KvParquet, MappingsComeBackAndAreReadByOthers) {
  Ok({"dataset", "create", "boards", "--shape", "mappings"});
  std::string lines;
  for (int i = 1; i <= 500; ++i) {
    lines += R"({"from":")" + std::to_string(i % 7) + R"(","to":")" + std::to_string(i) + R"(","sequence":)" +
             std::to_string(i * 3) + "}\n";
  }
  Ok({"import", "boards"}, lines);
  const Json exported = Export("boards");
  EXPECT_EQ(exported["form"], "mappings");
  Ok({"dataset", "create", "copy", "--shape", "mappings"});
  Ok({"import", "copy", "--format", "parquet", exported["url"]});
  EXPECT_EQ(Ok({"export", "copy"}), Ok({"export", "boards"}));
  ReadBack(exported, "boards", 500);
}

TEST_F(KvParquet, AnEmptyDatasetIsExportedAndImported) {
  Ok({"dataset", "create", "events"});
  const Json exported = Export("events");
  EXPECT_EQ(exported["rows"], 0);
  EXPECT_EQ(exported["files"], 1);
  EXPECT_EQ(OkJson({"import", "events", "--format", "parquet", exported["url"]})["lines"], 0);
  ReadBack(exported, "events", 0);
}

TEST_F(KvParquet, ARepeatedCallWithATokenIsTheSameExport) {
  MakeRows("events");
  const Json first = Export("events", {"--token", "monday"});
  EXPECT_EQ(first["id"], "monday");
  EXPECT_EQ(first["repeated"], false);
  Ok({"put", "events", "later", "c=v"});
  Json second = Export("events", {"--token", "monday"});
  EXPECT_EQ(second["repeated"], true);
  EXPECT_EQ(second["rows"], first["rows"]);
  EXPECT_EQ(second["data"], first["data"]);
  Fails({"export", "events", "--format", "parquet", "--to", Folder(), "--token", "monday", "--text"},
        "ALREADY_EXISTS: token: 'monday' was used for an export of dataset 'events' with other options");
  // It needs no store, and no kv-parquet, to say what there is.
  ::setenv("KV_PARQUET", "/nonexistent", 1);
  const Output told = Run({"--data", (dir_ / "nowhere").string(), "export", "events", "--format", "parquet",
                           "--to", Folder(), "--token", "monday"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("an earlier call with this token has made it"));
}

TEST_F(KvParquet, ThroughAServerItIsTheSame) {
  MakeRows("events");
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  Ok({"object", "create", "pins", R"({"n":1})"});
  const std::string before = Ok({"export", "events"});
  const KvServer server(KV_PROGRAM, {"--data", (dir_ / "store").string()});
  const auto by_server = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server.address()});
    const Output output = Run(arguments);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  };
  const Json exported =
      Json::parse(by_server({"export", "events", "--format", "parquet", "--to", Folder(), "--json"}));
  EXPECT_EQ(exported["snapshot"], false);
  by_server({"dataset", "create", "copy", "--max-versions", "0"});
  by_server({"import", "copy", "--format", "parquet", exported["url"]});
  EXPECT_EQ(by_server({"export", "copy"}), before);
  EXPECT_EQ(
      Json::parse(by_server({"export", "pins", "--format", "parquet", "--to", Folder(), "--json"}))["rows"],
      1);
  const Output both = Run({"--server", server.address(), "export", "events", "--format", "parquet", "--to",
                           Folder(), "--from", "file:x"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("not together with --server"));
}

TEST_F(KvParquet, ABackupIsExportedAsItWas) {
  const size_t cells = MakeRows("events");
  const std::string url = "file:" + (dir_ / "backups").string();
  Ok({"backup", "create", "--to", url});
  Ok({"put", "events", "later", "c=v"});
  EXPECT_EQ(Export("events")["rows"], cells + 1);
  const Json newest = Export("events", {"--from", url});
  EXPECT_EQ(newest["rows"], cells);
  EXPECT_EQ(newest["snapshot"], true);
  const Json now = Export("events", {"--from", url, "--at", "2100-01-01"});
  EXPECT_EQ(now["rows"], cells);
  EXPECT_LT(now["as_of_ms"], 4'000'000'000'000);
  Fails({"export", "events", "--format", "parquet", "--to", Folder(), "--from", url, "--at", "2020-01-01"},
        "NOT_FOUND");
  Fails({"export", "none", "--format", "parquet", "--to", Folder(), "--from", url},
        "there is none named 'none'");
  const Output nowhere =
      Run({"export", "events", "--format", "parquet", "--to", Folder(), "--at", "2020-01-01"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--from: say where the backups are"));
}

TEST_F(KvParquet, AValueOfAnotherTypeIsNamedAndLeavesNothing) {
  Ok({"dataset", "create", "users"});
  Ok({"put", "users", "user:7", "clicks=seven"});
  Fails({"export", "users", "--format", "parquet", "--to", Folder(), "--columns", "clicks:int64"},
        "FAILED_PRECONDITION: row 'user:7' column 'clicks': 'seven' is not a whole number of 64 bits; export "
        "this "
        "column as binary");
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(Folder()))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 0u);
}

TEST_F(KvParquet, WhatIsNotAnExportIsRefused) {
  MakeRows("events");
  Ok({"dataset", "create", "boards", "--shape", "mappings"});
  const Json exported = Export("events", {"--token", "monday"});
  const std::string folder = exported["url"];
  const auto refused = [this](const std::string& dataset, const std::string& place,
                              const std::string& problem) {
    Fails({"import", dataset, "--format", "parquet", place}, problem);
  };
  refused("boards", folder, "is an export of rows, and the dataset has mappings");
  refused("boards", FileOf(exported).string(), "the file has no column 'from'");
  refused("events", Folder(), "is no export, or one that has not ended");
  refused("events", Folder() + "/tuesday", "is no export");
  refused("events", "s3://bucket", "is no name of an export");
  refused("events", "-", "is not read from standard input");
  refused("events", (dir_ / "none.parquet").string(), "cannot open");
  refused("events", File("text.parquet", "text"), "kv-parquet: ");
  // A byte that has changed.
  std::fstream file(FileOf(exported), std::ios::in | std::ios::out);
  file.seekp(100).put('\xAA');
  file.close();
  refused("events", folder, "its checksum is");
  fs::remove(FileOf(exported));
  refused("events", folder, "is missing, which the manifest names");
  fs::resize_file(fs::path(folder) / "manifest.json", 100);
  refused("events", folder, "DATA_LOSS: monday/manifest.json");
  fs::remove(fs::path(folder) / "manifest.json");
  refused("events", folder, "is no export");
}

TEST_F(KvParquet, WithoutKvParquetItSaysWhatToInstall) {
  MakeRows("events");
  const std::string folder = Export("events")["url"];
  ::setenv("KV_PARQUET", "/nonexistent", 1);
  const std::string what = "./dev parquet gets Arrow from PyPI";
  Fails({"export", "events", "--format", "parquet", "--to", Folder()}, what);
  Fails({"import", "events", "--format", "parquet", folder}, what);
  Ok({"report", "create", "site", "--metric", "clicks"});
  Fails({"report", "load", "site", File("a.parquet", "text")}, what);
}

TEST_F(KvParquet, OptionsOfTheOtherFormatAreWrongUsage) {
  const auto wrong = [this](const std::vector<std::string>& arguments, const std::string& text) {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_THAT(output.err, HasSubstr(text));
  };
  wrong({"export", "events", "--format", "parquet"}, "--to: name the folder");
  wrong({"export", "events", "--columns", "a"}, "--columns: only with --format parquet");
  wrong({"export", "events", "--token", "a"}, "--token: only with --format parquet");
  wrong({"export", "events", "--at", "2020-01-01"}, "--at: only with --format parquet");
  wrong({"export", "events", "--format", "parquet", "--to", "x", "--parallel", "0"}, "--parallel");
  Ok({"dataset", "create", "events"});
  Fails({"export", "events", "--format", "parquet", "--to", Folder(), "--token", "a/b"}, "token: must be");
  Fails({"export", "events", "--format", "parquet", "--to", Folder(), "--columns", "row"},
        "'row' is there already");
}

TEST_F(KvParquet, AReportIsLoadedFromIt) {
  // A wide export is a table of points.
  Ok({"dataset", "create", "flights"});
  for (int i = 0; i < 10; ++i) {
    Ok({"put", "flights", std::to_string(i), "time=" + std::to_string(1'356'998'400'000 + i * 3'600'000),
        "carrier=" + std::to_string(i % 2), "departures=" + std::to_string(i), "late=0.5"});
  }
  // By one lane, which writes a single file.
  const std::string file =
      FileOf(Export("flights", {"--parallel", "1", "--columns",
                                "time:int64,carrier:int64,departures:int64,late:double"}))
          .string();
  const std::vector<std::string> metrics = {"--key", "carrier", "--metric", "departures", "--metric", "late"};
  std::vector<std::string> create = {"report", "create", "daily", "--resolution", "1h"};
  create.insert(create.end(), metrics.begin(), metrics.end());
  Ok(create);
  EXPECT_THAT(Ok({"report", "load", "daily", file, "--ignore", "row"}),
              HasSubstr("10 lines: 20 points, 0 rejected"));
  const auto sum = [this] {
    return Ok({"report", "query", "daily", "departures", "--from", "2013-01-01", "--to", "2013-01-02", "--by",
               "carrier", "--csv"});
  };
  const std::string once = sum();
  EXPECT_THAT(once, HasSubstr(",25\n"));
  EXPECT_THAT(once, HasSubstr(",20\n"));
  // Again, and as a file of any name: nothing counts twice.
  fs::copy(file, dir_ / "points");
  Ok({"report", "load", "daily", (dir_ / "points").string(), "--format", "parquet", "--ignore", "row"});
  EXPECT_EQ(sum(), once);
  // An error in a row names its line, as in other formats.
  const Output rejected = Kv({"report", "load", "daily", file});
  EXPECT_THAT(rejected.out + rejected.err, HasSubstr("10 lines: 0 points, 10 rejected"));
  fs::resize_file(dir_ / "points", fs::file_size(dir_ / "points") / 2);
  Fails({"report", "load", "daily", (dir_ / "points").string(), "--format", "parquet"}, "kv-parquet: ");
}

TEST_F(KvParquet, AReportIsLoadedFromFilesOfPyArrow) {
  if (::access(KV_ARROW_PYTHON, X_OK) != 0) {
    GTEST_SKIP() << "PyArrow is not installed; ./dev parquet installs it";
  }
  const std::string script = File("points.py", R"(
import datetime, sys
import pyarrow as pa, pyarrow.parquet
times = [datetime.datetime(2013, 1, 1, hour, tzinfo=datetime.timezone.utc) for hour in range(3)]
pyarrow.parquet.write_table(pa.table({
    "time": pa.array(times, pa.timestamp("us", "UTC")),
    "carrier": pa.array(["UA", "AA", None]).dictionary_encode(),
    "departures": pa.array([3, None, 5], pa.int32()),
    "delay": pa.array([[4.5, -2, 11], [], None], pa.list_(pa.float64())),
    "planes": pa.array([["N1", "N2"], ["N1"], ["N3"]]),
    "notes": pa.array([{"a": 1}] * 3)}), sys.argv[1])
)");
  const std::string file = (dir_ / "points.parquet").string();
  ASSERT_EQ(RunProgram({KV_ARROW_PYTHON, script, file}).code, 0);
  Ok({"report", "create", "flights", "--key", "carrier=none", "--metric", "departures", "--metric",
      "delay:distribution", "--metric", "planes:distinct", "--resolution", "1h"});
  Fails({"report", "load", "flights", file}, "column 'notes' is of type struct");
  const Output loaded = Kv({"report", "load", "flights", file, "--ignore", "notes"});
  EXPECT_THAT(loaded.out, HasSubstr("3 lines: ")) << loaded.err;
  const auto query = [this](const std::vector<std::string>& rest) {
    std::vector<std::string> arguments = {"report",     "query", "flights",    "--from",
                                          "2013-01-01", "--to",  "2013-01-02", "--csv"};
    arguments.insert(arguments.begin() + 3, rest.begin(), rest.end());
    return Ok(arguments);
  };
  EXPECT_THAT(query({"departures"}), HasSubstr(",8\n"));
  EXPECT_THAT(query({"departures", "--by", "carrier"}), HasSubstr("none,2013-01-01T00:00:00Z,5"));
  EXPECT_THAT(query({"planes", "--function", "distinct"}), HasSubstr(",3\n"));
  EXPECT_THAT(query({"delay", "--function", "max"}), HasSubstr(",11.0\n"));
}

}  // namespace
}  // namespace kvstore::testing
