#include <arrow/status.h>
#include <unistd.h>

#include <charconv>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "export/parquet/print_lines.h"
#include "export/parquet/write_table.h"

/// kv-parquet: writes and reads Parquet files for kv, which starts it. It is a program of its own because
/// Arrow's libraries export OpenSSL's symbols, and would take over the TLS of any process that links them.
namespace {

using kvstore::columnar::LineForm;
using kvstore::columnar::LineOptions;

constexpr int kWrongUsage = 2;

constexpr char kUsage[] =
    R"(kv-parquet writes and reads Parquet files for kv, which starts it.

  kv-parquet write        reads a table in kv's own form from standard input, writes a Parquet file to standard output
  kv-parquet lines FORM   reads a Parquet file, which must be standard input, prints its rows as lines of JSON
      FORM                rows, objects, mappings, points
      --without COLUMN    does not read this column; may be repeated
      --text COLUMN       points: values of this column are strings; may be repeated
      --time MS           rows: the timestamp of cells where the file has none
)";

bool ParseForm(std::string_view text, LineForm& form) {
  if (text == "rows") {
    form = LineForm::kRows;
  } else if (text == "objects") {
    form = LineForm::kObjects;
  } else if (text == "mappings") {
    form = LineForm::kMappings;
  } else if (text == "points") {
    form = LineForm::kPoints;
  } else {
    return false;
  }
  return true;
}

/// Reads the arguments after `lines`; false if they are wrong.
bool ParseLines(const std::vector<std::string>& arguments, LineOptions& options) {
  if (arguments.empty() || !ParseForm(arguments[0], options.form)) return false;
  for (size_t i = 1; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return false;
    const std::string& value = arguments[i + 1];
    if (arguments[i] == "--without") {
      options.without.push_back(value);
    } else if (arguments[i] == "--text") {
      options.text.push_back(value);
    } else if (arguments[i] == "--time") {
      uint64_t time = 0;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), time);
      if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return false;
      options.time = time;
    } else {
      return false;
    }
  }
  return true;
}

/// Executes the command; returns the exit code.
int Run(const std::vector<std::string>& arguments) {
  const bool writes = arguments.size() == 1 && arguments[0] == "write";
  LineOptions options;
  if (!writes) {
    const bool is_right = !arguments.empty() && arguments[0] == "lines" &&
                          ParseLines({arguments.begin() + 1, arguments.end()}, options);
    if (!is_right) {
      std::cerr << kUsage;
      return kWrongUsage;
    }
  }
  const arrow::Status done = writes ? kvstore::columnar::WriteTable(STDIN_FILENO, STDOUT_FILENO)
                                    : kvstore::columnar::PrintLines(STDIN_FILENO, STDOUT_FILENO, options);
  if (done.ok()) return 0;
  std::cerr << done.message() << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    // Parquet's library throws, and memory may be short.
    std::cerr << error.what() << '\n';
    return 1;
  }
}
