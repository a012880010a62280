#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "json/bytes_json.h"
#include "tests/cli/kv_program.h"
#include "tests/support/random.h"

namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;

/// The value of each cell, by row, column and timestamp.
using Cells = std::map<std::string, std::map<std::string, std::map<uint64_t, std::string>>>;

class KvExport : public KvProgram {
 protected:
  void SetUp() override { Ok({"dataset", "create", "events", "--max-versions", "0"}); }

  static std::string Read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Returns the cells in the lines of an export, whose last one must be the marker.
  static Cells Parse(const std::string& text) {
    Cells cells;
    std::stringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
      const Json json = Json::parse(line);
      if (json.contains("marker")) break;
      auto& row = cells[*BytesFromJson(json["row"])];
      for (const Json& item : json["items"]) {
        for (const Json& cell : item["cells"]) {
          row[*BytesFromJson(item["column"])][cell["timestamp"].get<uint64_t>()] =
              *BytesFromJson(cell["value"]);
        }
      }
    }
    EXPECT_EQ(line, R"({"marker":null})");
    EXPECT_FALSE(std::getline(lines, line)) << "lines behind the marker";
    return cells;
  }
  /// Returns the same cells as lines of puts.
  static std::string PutLines(const Cells& cells) {
    std::string lines;
    for (const auto& [key, columns] : cells) {
      Json items = Json::array();
      for (const auto& [column, versions] : columns) {
        for (const auto& [timestamp, value] : versions) {
          items.push_back(
              {{"column", BytesToJson(column)}, {"timestamp", timestamp}, {"value", BytesToJson(value)}});
        }
      }
      lines += Json{{"row", BytesToJson(key)}, {"items", std::move(items)}}.dump() + "\n";
    }
    return lines;
  }
};

TEST_F(KvExport, PrintsWhatAScanPrints) {
  Ok({"put", "events", "user:7", "click=pin:3", "view=", "--timestamp", "1000"});
  Ok({"put", "events", "user:7", "click=pin:4", "--timestamp", "2000"});
  Ok({"put", "events", "user:8", "click=pin:5", "--timestamp", "3000"});
  const std::string text = Ok({"export", "events"});
  EXPECT_EQ(text,
            R"({"items":[{"cells":[{"timestamp":2000,"value":"pin:4"},{"timestamp":1000,"value":"pin:3"}],)"
            R"("column":"click"},{"cells":[{"timestamp":1000,"value":""}],"column":"view"}],"row":"user:7"})"
            "\n"
            R"({"items":[{"cells":[{"timestamp":3000,"value":"pin:5"}],"column":"click"}],"row":"user:8"})"
            "\n"
            R"({"marker":null})"
            "\n");
  EXPECT_EQ(text, Ok({"scan", "events", "--all", "--json", "--versions", "1000"}));
  EXPECT_EQ(text, Ok({"export", "events", "--to", "-", "--format", "jsonl", "--json"}));
}

TEST_F(KvExport, OnlyVisibleCellsAreWritten) {
  Ok({"dataset", "create", "two", "--max-versions", "2"});
  for (const char* timestamp : {"1", "2", "3"}) {
    Ok({"put", "two", "r", "x=v", "--timestamp", timestamp});
  }
  EXPECT_EQ(Parse(Ok({"export", "two"})), (Cells{{"r", {{"x", {{2, "v"}, {3, "v"}}}}}}));
}

/// Bytes of any kind, and text that JSON or a terminal has to escape.
std::string AnyBytes(Random& random, size_t max) {
  if (random.OneIn(3)) return random.HostileBytes(0, max);
  constexpr std::array kText = {
      "a",      "\"",     "\\",     "\n",     "\x01",   "\x7F",       "\xC2\x85",
      "\u00E9", "\u202E", "\u2028", "\uFFFD", "\uFFFF", "\U0001F4BE", "{\"b64\":\"\"}"};
  const bool text = random.OneIn(2);
  std::string bytes;
  while (bytes.size() < max && !random.OneIn(max)) {
    if (text) {
      bytes += kText[random.Below(kText.size())];
    } else {
      bytes.push_back(static_cast<char>(random.Below(256)));
    }
  }
  return bytes;
}

TEST_F(KvExport, AnyBytesComeBackAsTheyWere) {
  Random random(Seed("KvExport.AnyBytesComeBackAsTheyWere"));
  constexpr uint64_t kMaxTimestamp = (uint64_t{1} << 63) - 1;
  Cells cells;
  for (int i = 0; i < 300; ++i) {
    auto& row = cells["r" + AnyBytes(random, 30)];
    for (uint64_t n = 1 + random.Below(8); n > 0; --n) {
      auto& versions = row[random.OneIn(4) ? "same" : AnyBytes(random, 12)];
      const uint64_t timestamp = random.OneIn(2) ? random.Below(4) : kMaxTimestamp - random.Below(4);
      versions[timestamp] = AnyBytes(random, 60);
    }
  }
  Ok({"import", "events"}, PutLines(cells));
  const std::string text = Ok({"export", "events"});
  ASSERT_EQ(Parse(text), cells);

  Ok({"dataset", "create", "copy", "--max-versions", "0"});
  const std::string file = File("copy.jsonl", text);
  const Json answer = Json::parse(Ok({"import", "copy", file, "--json"}));
  EXPECT_EQ(answer["imported"], cells.size());
  EXPECT_EQ(answer["rejected"], 0);
  EXPECT_EQ(answer["markers"], 1);
  EXPECT_EQ(Ok({"export", "copy"}), text);
  Ok({"import", "copy", file, "--verify"});
  EXPECT_EQ(Json::parse(Ok({"import", "copy", file, "--only-changes", "--json"}))["same"], cells.size());
}

TEST_F(KvExport, ALargeRowTakesSeveralLines) {
  const std::string kilobytes(400 << 10, 'v');
  Cells cells;
  for (uint64_t timestamp = 1; timestamp <= 8; ++timestamp) cells["large"]["x"][timestamp] = kilobytes;
  Ok({"import", "events"}, PutLines(cells));
  const std::string text = Ok({"export", "events"});
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 3);
  Ok({"dataset", "create", "copy", "--max-versions", "0"});
  const Json answer =
      Json::parse(Ok({"--json", "export", "events", "--to", (dir_ / "events.jsonl").string()}));
  EXPECT_EQ(answer["rows"], 1);
  EXPECT_EQ(answer["cells"], 8);
  Ok({"import", "copy", (dir_ / "events.jsonl").string()});
  EXPECT_TRUE(Ok({"export", "copy"}) == text);
}

TEST_F(KvExport, AFileIsWhatStandardOutputWouldBe) {
  Ok({"put", "events", "r", "x=1", "y=2", "--timestamp", "1"});
  const std::string file = File("events.jsonl", "an older export\n");
  const std::string said = Ok({"export", "events", "--to", file});
  EXPECT_TRUE(said.starts_with("exported 1 rows, 2 cells to " + file + ", in ")) << said;
  EXPECT_EQ(Read(file), Ok({"export", "events"}));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const Json answer = Json::parse(Ok({"export", "events", "--to", file, "--json"}));
  EXPECT_EQ(answer["ok"], true);
  EXPECT_EQ(answer["file"], file);
  EXPECT_EQ(answer["rows"], 1);
  EXPECT_EQ(answer["cells"], 2);
}

TEST_F(KvExport, AnEmptyDatasetIsExportedAndImported) {
  const std::string text = Ok({"export", "events"});
  EXPECT_EQ(text, "{\"marker\":null}\n");
  const std::string out = Ok({"import", "events"}, text);
  EXPECT_TRUE(out.starts_with("1 lines: 0 imported, 0 rejected, 1 marker, in ")) << out;
}

TEST_F(KvExport, ObjectsAndMappingsAreExportedAndImported) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  Ok({"dataset", "create", "boards", "--shape", "mappings"});
  const auto create = [&](const std::string& data) {
    return Json::parse(Ok({"object", "create", "pins", data, "--json"}))["object_id"].get<std::string>();
  };
  const std::string chair = create("{\"n\": 18446744073709551616,\n \"s\": \"a\\nb\"}");
  const std::string gone = create(R"({"active":false})");
  EXPECT_EQ(Ok({"export", "pins"}), "{\"id\":\"" + chair +
                                        "\",\"data\":{\"n\": 18446744073709551616,  \"s\": \"a\\nb\"}}\n"
                                        "{\"id\":\"" +
                                        gone + "\",\"data\":{\"active\":false}}\n{\"marker\":null}\n");
  // A page has no more than 10,000 entries.
  std::string lines;
  for (int i = 1; i <= 10'001; ++i) {
    lines +=
        "{\"from\":\"7\",\"to\":\"" + std::to_string(i) + "\",\"sequence\":" + std::to_string(i * 3) + "}\n";
  }
  Ok({"import", "boards"}, lines);
  const std::string exported = Ok({"export", "boards"});
  EXPECT_EQ(exported, lines + "{\"marker\":null}\n");
  Ok({"dataset", "create", "copy", "--shape", "mappings"});
  Ok({"import", "copy"}, exported);
  EXPECT_EQ(Ok({"export", "copy"}), exported);
}

TEST_F(KvExport, AnObjectIsChangedByTheLineThatItWasExportedAs) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  const Json made = Json::parse(Ok({"object", "create", "pins", R"({"n":1})", "--json"}));
  const std::string exported = Ok({"export", "pins"});
  Ok({"object", "update", "pins", made["object_id"].get<std::string>(), R"({"n":2})"});
  Ok({"import", "pins"}, exported);
  EXPECT_EQ(Ok({"export", "pins"}), exported);
}

TEST_F(KvExport, AnyObjectIsImportedFromItsLineAsOftenAsItIsGiven) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  const auto create = [&](const std::string& data) {
    return Json::parse(Ok({"object", "create", "pins", data, "--json"}))["object_id"].get<std::string>();
  };
  create("{\"wide\": 18446744073709551616,\n \"long\": 0.12345678901234567890123}");
  create(R"({"active":false,"n":1})");
  const std::string deleted = create(R"({"n":2})");
  const std::string exported = Ok({"export", "pins"});
  Ok({"import", "pins", "--verify"}, exported);
  Ok({"object", "delete", "pins", deleted});
  for (int i = 0; i < 2; ++i) {
    const Json answer = Json::parse(Ok({"import", "pins", "--json"}, exported));
    EXPECT_EQ(answer["imported"], 3) << answer;
    EXPECT_EQ(answer["rejected"], 0) << answer;
  }
  EXPECT_EQ(Ok({"export", "pins"}), exported);
  Ok({"import", "pins", "--verify"}, exported);
}

TEST_F(KvExport, WhatCannotBeExportedLeavesNoFile) {
  const std::string file = (dir_ / "out").string();
  Fails({"export", "none", "--to", file}, "there is none named 'none'");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(Kv({"export", "events", "--format", "parquet"}).code, 2);
}

TEST_F(KvExport, OnlyARegularFileIsReplaced) {
  const std::string file = File("file", "kept");
  const std::string link = (dir_ / "link").string();
  fs::create_symlink(file, link);
  Fails({"export", "events", "--to", link}, "--to: " + link + " is a symbolic link");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Read(file), "kept");
  Fails({"export", "events", "--to", dir_.path().string()}, "is a folder; name a file in it");
  Fails({"export", "events", "--to", "/dev/null"}, "is not a regular file");
  EXPECT_EQ(Kv({"export", "events", "--to", ""}).code, 2);
  Fails({"export", "events", "--to", (dir_ / "none" / "file").string()}, "No such file or directory");
}

}  // namespace
}  // namespace kvstore::testing
