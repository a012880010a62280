#include "export/row_maker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "export/change_row_maker.h"
#include "idgen/object_id.h"
#include "kvstore_api/limits.h"
#include "tests/export/export_fixture.h"

/// Units as rows of tables.
namespace kvstore::exports {
namespace {

using absl::StatusCode;
using pipe::ColumnType;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::IsEmpty;
using testing::MappingUnitOf;
using testing::ObjectUnitOf;
using testing::RowUnitOf;

/// Keeps rows as texts: values with '|' between them, '-' for null.
class TextSink : public RowSink {
 public:
  explicit TextSink(const RowMaker& maker) : schema_{maker.columns(), {}}, rows_(schema_) {}

  pipe::BatchBuilder& rows() override { return rows_; }
  absl::Status EndRow() override {
    rows_.EndRow();
    std::string frame;
    for (const std::string_view part : rows_.Frame()) frame += part;
    std::vector<uint64_t> words(frame.size() / 8);
    std::memcpy(words.data(), frame.data() + pipe::kFrameHeaderBytes, frame.size() - pipe::kFrameHeaderBytes);
    std::string problem;
    const auto batch = pipe::ReadBatch(
        schema_, {reinterpret_cast<const char*>(words.data()), frame.size() - pipe::kFrameHeaderBytes},
        problem);
    EXPECT_TRUE(batch) << problem;
    if (batch) texts_.push_back(TextOf(*batch));
    rows_.Clear();
    return absl::OkStatus();
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::string TextOf(const pipe::BatchView& batch) const {
    std::string text;
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      const pipe::ColumnView& column = batch.columns[i];
      if (i > 0) text += '|';
      if (column.validity != nullptr && (column.validity[0] & 1) == 0) {
        text += '-';
      } else if (column.numbers == nullptr) {
        text += column.bytes;
      } else if (schema_.columns[i].type == ColumnType::kDouble) {
        double number = 0;
        std::memcpy(&number, column.numbers, sizeof(number));
        text += std::to_string(number);
      } else {
        text += std::to_string(column.numbers[0]);
      }
    }
    return text;
  }

  const pipe::Schema schema_;
  pipe::BatchBuilder rows_;
  std::vector<std::string> texts_;
};

/// The rows that a maker makes of these units, or the first error.
absl::StatusOr<std::vector<std::string>> RowsBy(RowMaker& maker, std::vector<Unit> units) {
  TextSink sink(maker);
  for (Unit& unit : units) {
    if (auto status = maker.Add(unit, sink); !status.ok()) return status;
  }
  if (auto status = maker.EndRange(sink); !status.ok()) return status;
  return sink.texts();
}

/// The rows of a table of these units.
absl::StatusOr<std::vector<std::string>> Rows(Shape shape, const TableOptions& options,
                                              std::vector<Unit> units) {
  return RowsBy(*NewRowMaker(shape, options), std::move(units));
}

/// The rows of a table of changes.
absl::StatusOr<std::vector<std::string>> ChangedRows(Shape shape, const TableOptions& options,
                                                     std::vector<Unit> units) {
  return RowsBy(*NewChangeRowMaker(shape, options), std::move(units));
}

TEST(RowMaker, EachCellIsARowOfALongTable) {
  const std::vector<Unit> units = {RowUnitOf("r", "a", {{5, "new"}, {3, "old"}}),
                                   RowUnitOf("r", "b", {{4, ""}}),
                                   RowUnitOf(std::string("\0s", 2), "", {{kMaxTimestamp, "\xFF"}})};
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(Shape::kRows, {}, units));
  EXPECT_THAT(rows, ElementsAre("r|a|5|new", "r|a|3|old", "r|b|4|",
                                std::string("\0s", 2) + "||9223372036854775807|\xFF"));
  EXPECT_EQ(FormOf(Shape::kRows, {}), "long");
}

TEST(RowMaker, TextIsChecked) {
  EXPECT_OK(Rows(Shape::kRows, {.text = true}, {RowUnitOf("r\xC3\xA4", "a", {{5, "v"}})}));
  for (const Unit& unit : {RowUnitOf("\xFF", "a", {{5, "v"}}), RowUnitOf("r", "\xFF", {{5, "v"}}),
                           RowUnitOf("r", "a", {{5, "\xFF"}})}) {
    EXPECT_THAT(Rows(Shape::kRows, {.text = true}, {unit}),
                FailsWith(StatusCode::kFailedPrecondition, "export without --text"));
  }
}

TEST(RowMaker, AWideTableHasTheNewestValues) {
  const TableOptions options = {.columns = {{"b", ColumnType::kText},
                                            {"n", ColumnType::kInt64},
                                            {"x", ColumnType::kDouble},
                                            {"f", ColumnType::kBool}}};
  const std::vector<Unit> units = {
      RowUnitOf("1", "a", {{9, "not asked for"}}),
      RowUnitOf("1", "b", {{5, "new"}, {3, "old"}}),
      // A column that comes in pieces.
      RowUnitOf("1", "b", {{2, "older"}}),
      RowUnitOf("1", "n", {{5, "-7"}}),
      RowUnitOf("2", "a", {{5, "not asked for"}}),
      RowUnitOf("3", "f", {{5, "true"}}),
      RowUnitOf("3", "x", {{5, "1e3"}}),
  };
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(Shape::kRows, options, units));
  EXPECT_THAT(rows, ElementsAre("1|new|-7|-|-", "3|-|-|1000.000000|1"));
  EXPECT_EQ(FormOf(Shape::kRows, options), "wide");
}

TEST(RowMaker, AValueThatHasNotItsTypeIsNamed) {
  const auto error = [](ColumnType type, const std::string& value) {
    return Rows(Shape::kRows, {.columns = {{"c", type}}}, {RowUnitOf("user:7", "c", {{5, value}})}).status();
  };
  const auto named = [](const std::string& problem) {
    return FailsWith(StatusCode::kFailedPrecondition,
                     "row 'user:7' column 'c': " + problem + "; export this column as binary");
  };
  for (const char* value : {"", "x", "1.5", " 1", "1 ", "9223372036854775808", "+1"}) {
    EXPECT_THAT(error(ColumnType::kInt64, value),
                named("'" + std::string(value) + "' is not a whole number of 64 bits"));
  }
  for (const char* value : {"", "x", "nan", "inf", "1e999"}) {
    EXPECT_THAT(error(ColumnType::kDouble, value),
                named("'" + std::string(value) + "' is not a finite number"));
  }
  EXPECT_THAT(error(ColumnType::kBool, "1"), named("'1' is not true or false"));
  EXPECT_THAT(error(ColumnType::kText, "\xFF"), named("its bytes are not UTF-8"));
  EXPECT_THAT(error(ColumnType::kInt64, std::string(100, 'y')),
              named("'" + std::string(40, 'y') + "...' is not a whole number of 64 bits"));
  EXPECT_OK(error(ColumnType::kInt64, "-9223372036854775808"));
}

TEST(RowMaker, ARowThatIsTooLargeIsNamed) {
  TableOptions options;
  std::vector<Unit> units;
  for (int i = 0; i < 9; ++i) {
    options.columns.push_back({"c" + std::to_string(i)});
    units.push_back(RowUnitOf("large", "c" + std::to_string(i), {{1, std::string(kMaxValueBytes, 'v')}}));
  }
  EXPECT_THAT(Rows(Shape::kRows, options, units),
              FailsWith(StatusCode::kResourceExhausted, "row 'large' column 'c8': the columns of this row"));
  units.pop_back();
  EXPECT_OK(Rows(Shape::kRows, options, units));
}

TEST(RowMaker, ObjectsHaveTheirFields) {
  const uint64_t id = uint64_t{3} << 46 | uint64_t{5} << 36 | 7;
  const TableOptions options = {.columns = {{"title", ColumnType::kText},
                                            {"owner.name", ColumnType::kText},
                                            {"likes", ColumnType::kInt64},
                                            {"price", ColumnType::kDouble},
                                            {"active", ColumnType::kBool}}};
  const std::string chair =
      R"({"title":"a chair","owner":{"name":"ann"},"likes":3,"price":1.5,"active":false})";
  const std::string other = R"({"title":{"x":[1]},"owner":"nobody","likes":null,"price":2})";
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(Shape::kObjects, options,
                                             {ObjectUnitOf(id, 9, chair), ObjectUnitOf(id + 1, 8, other)}));
  const std::string first = std::to_string(id) + "|3|5|7|9|";
  const std::string second = std::to_string(id + 1) + "|3|5|8|8|";
  EXPECT_THAT(rows, ElementsAre(first + chair + "|a chair|ann|3|1.500000|0",
                                second + other + R"(|{"x":[1]}|-|-|2.000000|-)"));
  EXPECT_EQ(FormOf(Shape::kObjects, options), "objects");
  EXPECT_THAT(*Rows(Shape::kObjects, {}, {ObjectUnitOf(id, 9, chair)}), ElementsAre(first + chair));
}

TEST(RowMaker, AFieldThatHasNotItsTypeIsNamed) {
  const uint64_t id = uint64_t{3} << 46 | uint64_t{5} << 36 | 7;
  const auto error = [&](ColumnType type, const std::string& value) {
    return Rows(Shape::kObjects, {.columns = {{"f", type}}}, {ObjectUnitOf(id, 1, R"({"f":)" + value + "}")})
        .status();
  };
  const auto named = [&](const std::string& problem) {
    return FailsWith(StatusCode::kFailedPrecondition, "object " + std::to_string(id) + " field 'f': " +
                                                          problem + "; export this field as string");
  };
  EXPECT_THAT(error(ColumnType::kInt64, "1.5"), named("'1.5' is not a whole number of 64 bits"));
  EXPECT_THAT(error(ColumnType::kInt64, "18446744073709551615"),
              named("'18446744073709551615' is not a whole number of 64 bits"));
  EXPECT_THAT(error(ColumnType::kDouble, R"("1")"), named(R"('"1"' is not a finite number)"));
  EXPECT_THAT(error(ColumnType::kBool, "0"), named("'0' is not true or false"));
  EXPECT_OK(error(ColumnType::kText, "18446744073709551616"));
}

TEST(RowMaker, MappingsHaveTheirSequences) {
  ASSERT_OK_AND_ASSIGN(
      const auto rows,
      Rows(Shape::kMappings, {}, {MappingUnitOf(5, 6, 7), MappingUnitOf(5, kMaxId, kMaxTimestamp)}));
  EXPECT_THAT(rows, ElementsAre("5|6|7", "5|4611686018427387903|9223372036854775807"));
}

TEST(RowMaker, UnitsOfAnotherShapeAreRefused) {
  const Unit row = RowUnitOf("r", "c", {{1, "v"}});
  const Unit object = ObjectUnitOf(uint64_t{5} << 36 | 7, 1, "{}");
  const Unit mapping = MappingUnitOf(1, 2, 3);
  const auto refused = FailsWith(StatusCode::kDataLoss, "is none of");
  EXPECT_THAT(Rows(Shape::kRows, {}, {object}), refused);
  EXPECT_THAT(Rows(Shape::kRows, {.columns = {{"c"}}}, {mapping}), refused);
  EXPECT_THAT(Rows(Shape::kObjects, {}, {mapping}), refused);
  EXPECT_THAT(Rows(Shape::kObjects, {}, {ObjectUnitOf(7, 1, "{}")}), refused);  // an ID without a type
  EXPECT_THAT(Rows(Shape::kMappings, {}, {row}), refused);
  EXPECT_THAT(Rows(Shape::kObjects, {}, {ObjectUnitOf(uint64_t{5} << 36 | 7, 1, "{\"\xFF\":1}")}),
              FailsWith(StatusCode::kDataLoss, "is not UTF-8"));
  EXPECT_THAT(Rows(Shape::kObjects, {.columns = {{"f", ColumnType::kText}}},
                   {ObjectUnitOf(uint64_t{5} << 36 | 7, 1, "{")}),
              FailsWith(StatusCode::kDataLoss, "is not JSON"));
  EXPECT_THAT(*Rows(Shape::kRows, {}, {RowUnitOf("r", "c", {})}), IsEmpty());
}

TEST(ChangeRowMaker, WhatIsGoneIsItsKeyAlone) {
  std::string whole_row;
  AppendEncoded(whole_row, "s");
  ASSERT_OK_AND_ASSIGN(const auto rows, ChangedRows(Shape::kRows, {},
                                                    {RowUnitOf("r", "a", {{5, "new"}, {3, "old"}}),
                                                     RowUnitOf("r", "b", {}), Unit{whole_row, {}}}));
  EXPECT_THAT(rows, ElementsAre("r|a|5|new|0", "r|a|3|old|0", "r|b|-|-|1", "s|-|-|-|1"));
  ASSERT_OK_AND_ASSIGN(
      const auto entries,
      ChangedRows(Shape::kMappings, {}, {MappingUnitOf(5, 6, 7), Unit{MappingUnitKey(5, 8), {}}}));
  EXPECT_THAT(entries, ElementsAre("5|6|7|0", "5|8|-|1"));
}

TEST(ChangeRowMaker, ObjectsHaveThePartsOfTheirIdAlsoWhenTheyAreGone) {
  const uint64_t id = ObjectId::Make(3, 7, 9)->value();
  const TableOptions options{.columns = {{"n", ColumnType::kInt64}}};
  ASSERT_OK_AND_ASSIGN(const auto rows,
                       ChangedRows(Shape::kObjects, options,
                                   {ObjectUnitOf(id, 5, R"({"n":1})"), Unit{ObjectUnitKey(id), {}}}));
  const std::string parts = std::to_string(id) + "|3|7|9|";
  EXPECT_THAT(rows, ElementsAre(parts + R"(5|{"n":1}|1|0)", parts + "-|-|-|1"));
}

TEST(ChangeRowMaker, KeysOfWhatIsGoneAreCheckedToo) {
  EXPECT_THAT(ChangedRows(Shape::kRows, {.text = true}, {RowUnitOf("\xFF", "a", {})}),
              FailsWith(StatusCode::kFailedPrecondition, "export without --text"));
  EXPECT_THAT(ChangedRows(Shape::kObjects, {}, {RowUnitOf("r", "a", {})}),
              FailsWith(StatusCode::kDataLoss, "none of objects"));
}

}  // namespace
}  // namespace kvstore::exports
