#include "export/table_columns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore::exports {
namespace {

using absl::StatusCode;
using pipe::ColumnType;
using testing::FailsWith;

TEST(TableColumns, ATypeMayStandBehindTheName) {
  EXPECT_EQ(ParseTableColumn("click", Shape::kRows), (TableColumn{"click", ColumnType::kBytes}));
  EXPECT_EQ(ParseTableColumn("owner.name", Shape::kObjects), (TableColumn{"owner.name", ColumnType::kText}));
  EXPECT_EQ(ParseTableColumn("n:int64", Shape::kRows), (TableColumn{"n", ColumnType::kInt64}));
  EXPECT_EQ(ParseTableColumn("n:double", Shape::kRows), (TableColumn{"n", ColumnType::kDouble}));
  EXPECT_EQ(ParseTableColumn("n:bool", Shape::kObjects), (TableColumn{"n", ColumnType::kBool}));
  EXPECT_EQ(ParseTableColumn("n:string", Shape::kRows), (TableColumn{"n", ColumnType::kText}));
  EXPECT_EQ(ParseTableColumn("n:binary", Shape::kObjects), (TableColumn{"n", ColumnType::kBytes}));
}

TEST(TableColumns, WhatIsNoTypeBelongsToTheName) {
  EXPECT_EQ(ParseTableColumn("ns:click", Shape::kRows), (TableColumn{"ns:click", ColumnType::kBytes}));
  EXPECT_EQ(ParseTableColumn("ns:string:binary", Shape::kRows),
            (TableColumn{"ns:string", ColumnType::kBytes}));
  for (const char* text : {"a:b:int64", "x:binary", "n:bool"}) {
    EXPECT_EQ(ToText(ParseTableColumn(text, Shape::kRows)), text);
  }
}

TEST(TableColumns, ColumnsMustBeToldApartByAllReaders) {
  const auto check = [](std::vector<TableColumn> columns, Shape shape) {
    return CheckTableOptions({.columns = std::move(columns)}, shape);
  };
  EXPECT_OK(check({{"a"}, {"b"}}, Shape::kRows));
  EXPECT_OK(check({{"id"}}, Shape::kRows));
  EXPECT_THAT(check({{"a"}, {"A"}}, Shape::kRows),
              FailsWith(StatusCode::kInvalidArgument, "'A' is there already"));
  EXPECT_THAT(check({{"Row"}}, Shape::kRows),
              FailsWith(StatusCode::kInvalidArgument, "'Row' is there already"));
  EXPECT_THAT(check({{"data"}}, Shape::kObjects), FailsWith(StatusCode::kInvalidArgument, "local_id"));
  EXPECT_THAT(check({{""}}, Shape::kRows), FailsWith(StatusCode::kInvalidArgument, "one has no name"));
  EXPECT_THAT(check({{"\xFF"}}, Shape::kRows), FailsWith(StatusCode::kInvalidArgument, "not UTF-8"));
  EXPECT_THAT(check({{std::string(1025, 'c')}}, Shape::kRows),
              FailsWith(StatusCode::kInvalidArgument, "the limit is 1024"));
  EXPECT_THAT(check({{"a"}}, Shape::kMappings),
              FailsWith(StatusCode::kInvalidArgument, "from, to and sequence"));
  std::vector<TableColumn> many;
  for (int i = 0; i < 991; ++i) many.push_back({"c" + std::to_string(i)});
  EXPECT_THAT(check(many, Shape::kRows), FailsWith(StatusCode::kInvalidArgument, "there are 991"));
  EXPECT_THAT(CheckTableOptions({.text = true}, Shape::kObjects),
              FailsWith(StatusCode::kInvalidArgument, "only rows"));
}

}  // namespace
}  // namespace kvstore::exports
