#include "cli/reports/csv_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/temp_dir.h"

namespace kvstore::cli {
namespace {

using Record = std::vector<std::string>;
using Result = CsvReader::Result;

/// The results of reading a whole file.
struct Read {
  std::vector<Record> records;
  std::vector<uint64_t> lines;       // of the records
  std::vector<std::string> texts;    // of the records
  std::vector<uint64_t> bad;         // lines
  std::vector<std::string> reasons;  // of the bad lines
  uint64_t blank = 0;
  uint64_t consumed = 0;
};

/// A file with this text, and a reader of it.
class CsvFile {
 public:
  explicit CsvFile(const std::string& text, size_t max_record_bytes = size_t{1} << 20) {
    std::ofstream(dir_ / "in.csv", std::ios::binary) << text;
    file_ = ::open((dir_ / "in.csv").c_str(), O_RDONLY | O_CLOEXEC);
    reader_.emplace(file_, max_record_bytes);
  }
  ~CsvFile() { ::close(file_); }
  CsvReader& operator*() { return *reader_; }
  CsvReader* operator->() { return &*reader_; }

 private:
  const testing::TempDir dir_;
  int file_ = -1;
  std::optional<CsvReader> reader_;
};

Read ReadAll(const std::string& text, size_t max_record_bytes = size_t{1} << 20) {
  CsvFile reader(text, max_record_bytes);
  Read read;
  while (true) {
    const auto result = reader->Next();
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok() || *result == Result::kEnd) break;
    if (*result == Result::kBlank) ++read.blank;
    if (*result == Result::kBad) {
      read.bad.push_back(reader->line());
      read.reasons.push_back(reader->problem());
    }
    if (*result != Result::kRecord) continue;
    Record& record = read.records.emplace_back();
    for (const CsvReader::Field& field : reader->fields()) record.emplace_back(field.text);
    read.lines.push_back(reader->line());
    read.texts.emplace_back(reader->text());
  }
  read.consumed = reader->consumed();
  return read;
}

std::vector<Record> Records(const std::string& text) {
  const Read read = ReadAll(text);
  EXPECT_TRUE(read.bad.empty()) << text;
  return read.records;
}

TEST(CsvReader, PlainFields) {
  EXPECT_EQ(Records("a,b,c\n1,2,3\n"), (std::vector<Record>{{"a", "b", "c"}, {"1", "2", "3"}}));
  EXPECT_EQ(Records("a,b\n1,2"), (std::vector<Record>{{"a", "b"}, {"1", "2"}})) << "the last line has no end";
  EXPECT_EQ(Records("a,,\n,,c\n"), (std::vector<Record>{{"a", "", ""}, {"", "", "c"}}));
  EXPECT_EQ(Records(" a ,b\t\n"), (std::vector<Record>{{" a ", "b\t"}})) << "spaces belong to a field";
  EXPECT_EQ(Records(""), std::vector<Record>());
}

TEST(CsvReader, QuotedFields) {
  EXPECT_EQ(Records("\"a,b\",\"say \"\"hi\"\"\",\"\",x\n"),
            (std::vector<Record>{{"a,b", "say \"hi\"", "", "x"}}));
  EXPECT_EQ(Records("\"two\nlines\",1\n2,3\n"), (std::vector<Record>{{"two\nlines", "1"}, {"2", "3"}}));
  EXPECT_EQ(Records("\"\"\"\",\"\"\"\"\"\"\n"), (std::vector<Record>{{"\"", "\"\""}}));
  EXPECT_EQ(Records("\"a\""), (std::vector<Record>{{"a"}}));
  EXPECT_EQ(Records("\"a\",\n"), (std::vector<Record>{{"a", ""}}));
}

TEST(CsvReader, AnEmptyFieldBetweenQuotesIsToldFromNone) {
  CsvFile reader(",\"\",a\n");
  ASSERT_EQ(*reader->Next(), Result::kRecord);
  EXPECT_FALSE(reader->fields()[0].quoted);
  EXPECT_TRUE(reader->fields()[1].quoted);
  EXPECT_FALSE(reader->fields()[2].quoted);
}

TEST(CsvReader, LinesOfWindowsAndAByteOrderMark) {
  EXPECT_EQ(Records("\xEF\xBB\xBF"
                    "a,b\r\n1,2\r\n"),
            (std::vector<Record>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(Records("\xEF\xBB\xBF\"a\",\"b\"\r\n"), (std::vector<Record>{{"a", "b"}}));
  EXPECT_EQ(Records("a,\"b\r\nc\"\r\n"), (std::vector<Record>{{"a", "b\r\nc"}}))
      << "between quotes they stay";
  EXPECT_EQ(Records("a\n\xEF\xBB\xBF"
                    "b\n"),
            (std::vector<Record>{{"a"},
                                 {"\xEF\xBB\xBF"
                                  "b"}}))
      << "in front alone";
}

TEST(CsvReader, LinesAreNumberedAsInTheFile) {
  const Read read = ReadAll("a,b\n\n\"x\ny\",1\r\n\r\n2,3");
  EXPECT_EQ(read.blank, 2u);
  EXPECT_EQ(read.lines, (std::vector<uint64_t>{1, 3, 6}));
  EXPECT_EQ(read.texts, (std::vector<std::string>{"a,b", "\"x\ny\",1", "2,3"}));
  EXPECT_EQ(read.consumed, 19u);
}

TEST(CsvReader, PlacesOfRecordsDoNotDependOnWhereTheMarkIs) {
  CsvFile reader(
      "\xEF\xBB\xBF"
      "a\nbc\n");
  ASSERT_EQ(*reader->Next(), Result::kRecord);
  EXPECT_EQ(reader->offset(), 3u);
  ASSERT_EQ(*reader->Next(), Result::kRecord);
  EXPECT_EQ(reader->offset(), 5u);
  EXPECT_EQ(reader->consumed(), 8u);
}

TEST(CsvReader, AWrongQuoteMakesItsLineBadAndNoOther) {
  const Read read = ReadAll("1,2\na\"b,3\n4,5\n\"a\"b,6\n7,8\n\"open,9\n10,11\n");
  EXPECT_EQ(read.records, (std::vector<Record>{{"1", "2"}, {"4", "5"}, {"7", "8"}, {"10", "11"}}));
  EXPECT_EQ(read.bad, (std::vector<uint64_t>{2, 4, 6}));
  EXPECT_EQ(read.reasons[0], "field 1: has a quote, but does not begin with one");
  EXPECT_EQ(read.reasons[1], "field 1: text follows its closing quote");
  EXPECT_EQ(read.reasons[2], "a quote is not closed");
  EXPECT_EQ(read.lines, (std::vector<uint64_t>{1, 3, 5, 7}));
}

TEST(CsvReader, WrongQuotesThatMatchAcrossLinesLoseOnlyTheirLines) {
  const Read read = ReadAll("5\" pipe,1\n2,3\n6\" pipe,4\n5,6\n");
  EXPECT_EQ(read.bad, (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(read.records, (std::vector<Record>{{"2", "3"}, {"5", "6"}}));
}

TEST(CsvReader, ALineBeyondTheLimitIsSkipped) {
  const std::string longest(100, 'x');
  const Read read =
      ReadAll(longest + "\n" + longest + "y\n1,2\n\"" + longest + "\n" + longest + "\"\n3,4\n", 100);
  EXPECT_EQ(read.records, (std::vector<Record>{{longest}, {"1", "2"}, {"3", "4"}}));
  ASSERT_EQ(read.bad, (std::vector<uint64_t>{2, 4, 5}));
  EXPECT_EQ(read.reasons[0], "longer than the limit of 100 bytes");
}

TEST(CsvReader, ALineBeyondTheLimitMayBeTheLastOrMuchLonger) {
  const Read read = ReadAll("1,2\n" + std::string(5'000'000, 'x'), 1000);
  EXPECT_EQ(read.records.size(), 1u);
  EXPECT_EQ(read.bad, (std::vector<uint64_t>{2}));
  EXPECT_EQ(read.consumed, 5'000'004u);
}

TEST(CsvReader, AFileThatCannotBeReadIsAnError) {
  CsvReader reader(-1);
  EXPECT_EQ(reader.Next().status().code(), absl::StatusCode::kUnavailable);
}

std::string Written(const std::string& field, bool quoted) {
  if (!quoted && field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// Records of all lengths, so that they lie across the ends of what is read at once.
TEST(CsvReader, WhatAWriterHasWrittenComesBack) {
  testing::Random random(testing::Seed("CsvReader"));
  const std::vector<std::string> pieces = {"a",    "1.5", ",", "\"",   "\n",
                                           "\r\n", " ",   "ä", "\"\"", "2013-01-01"};
  std::string text;
  std::vector<Record> expected;
  while (text.size() < size_t{3} << 20) {
    Record record(2 + random.Below(4));
    std::string line;
    for (std::string& field : record) {
      const size_t count = random.Below(100) == 0 ? random.Below(3'000) : random.Below(4);
      for (size_t i = 0; i < count; ++i) field += pieces[random.Below(pieces.size())];
      if (!line.empty() || &field != &record.front()) line += ',';
      line += Written(field, random.Below(3) == 0);
    }
    text += line + (random.Below(2) == 0 ? "\n" : "\r\n");
    expected.push_back(std::move(record));
  }
  const Read read = ReadAll(text);
  EXPECT_TRUE(read.bad.empty());
  ASSERT_EQ(read.records.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(read.records[i], expected[i]) << "record " << i;
  EXPECT_EQ(read.consumed, text.size());
}

}  // namespace
}  // namespace kvstore::cli
