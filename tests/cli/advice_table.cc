#include "tests/cli/advice_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/cli/literals.h"

namespace kvstore::cli {
namespace {

const std::filesystem::path kRoot(KV_SOURCE_DIR);

std::string ReadWhole(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::vector<SourceText> TextsOfTheSources() {
  std::vector<SourceText> all;
  for (const auto& folder : std::filesystem::directory_iterator(kRoot)) {
    const std::string name = folder.path().filename();
    if (!folder.is_directory() || name == "tests" || name == "build" || name.starts_with(".")) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
      const std::string source = ReadWhole(entry.path());
      const Literals literals(source);
      for (const std::string& text : literals.texts()) {
        all.push_back({entry.path().lexically_relative(kRoot), text});
      }
    }
  }
  return all;
}

std::vector<std::vector<std::string>> AdviceTable(const std::string& heading) {
  const std::string page = ReadWhole(kRoot / "docs/operators.md");
  std::istringstream lines(page.substr(std::min(page.find(heading), page.size())));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  std::vector<std::vector<std::string>> rows;
  while (std::getline(lines, line) && line.starts_with("|")) {
    std::istringstream cells(line.substr(1));
    for (rows.emplace_back(); std::getline(cells, line, '|');) rows.back().push_back(line);
  }
  return rows;
}

size_t CheckTestsOf(const std::vector<std::vector<std::string>>& table) {
  static const std::regex kTests("`([a-z0-9_/]+)`(?: \\(([^)]*)\\))?");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "tests")) {
    if (entry.path().extension() == ".cc") files.push_back(entry.path());
  }
  size_t checked = 0;
  for (const auto& row : table) {
    EXPECT_EQ(row.size(), 3u);
    if (row.size() != 3) continue;
    SCOPED_TRACE(row[0]);
    bool any = false;
    for (std::sregex_iterator found(row[2].begin(), row[2].end(), kTests), end; found != end; ++found) {
      const std::string name = (*found)[1];
      std::string source;
      for (const auto& file : files) {
        if (file.string().ends_with("/" + name + ".cc")) source += ReadWhole(file);
      }
      EXPECT_NE(source, "") << name;
      std::istringstream cases((*found)[2]);
      for (std::string test; std::getline(cases >> std::ws, test, ',');) {
        test = test.substr(0, test.find("..."));
        EXPECT_TRUE(std::regex_search(source, std::regex("TEST(_F|_P)?\\((" + test + "|\\w+, " + test + ")")))
            << name << ": " << test;
        ++checked;
      }
      any = true;
    }
    EXPECT_TRUE(any);
  }
  return checked;
}

}  // namespace kvstore::cli
