#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "export/pipe/batch_builder.h"
#include "export/pipe/table.h"
#include "tests/support/random.h"

/// The form in which kv sends tables to kv-parquet: what is written is read back, and nothing else is read.
namespace kvstore::pipe {
namespace {

using testing::Random;
using testing::Seed;

const Schema kSchema = {.columns = {{"row", ColumnType::kBytes, false},
                                    {"text", ColumnType::kText, true},
                                    {"n", ColumnType::kInt64, true},
                                    {"small", ColumnType::kInt32, false},
                                    {"real", ColumnType::kDouble, true},
                                    {"flag", ColumnType::kBool, true},
                                    {"time", ColumnType::kTime, false}},
                        .notes = {{"kvstore.form", "wide"}, {"empty", ""}}};

/// The values of a row; what is nullopt is null.
struct TestRow {
  std::string row;
  std::optional<std::string> text;
  std::optional<int64_t> n;
  int64_t small = 0;
  std::optional<double> real;
  std::optional<bool> flag;
  int64_t time = 0;
};

void Add(BatchBuilder& builder, const TestRow& row) {
  builder.AddBytes(0, row.row);
  row.text ? builder.AddBytes(1, *row.text) : builder.AddNull(1);
  row.n ? builder.AddNumber(2, *row.n) : builder.AddNull(2);
  builder.AddNumber(3, row.small);
  row.real ? builder.AddDouble(4, *row.real) : builder.AddNull(4);
  row.flag ? builder.AddNumber(5, *row.flag ? 1 : 0) : builder.AddNull(5);
  builder.AddNumber(6, row.time);
  builder.EndRow();
}

std::string FrameOf(BatchBuilder& builder) {
  std::string frame;
  for (const std::string_view part : builder.Frame()) frame += part;
  return frame;
}

/// A frame's bytes without its header, at an address that is a multiple of 8.
class Aligned {
 public:
  explicit Aligned(std::string_view bytes) : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(words_.data(), bytes.data(), bytes.size());
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(words_.data()), size_}; }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

bool IsValid(const ColumnView& column, size_t row) {
  return column.validity == nullptr || (column.validity[row / 8] >> row % 8 & 1) == 1;
}
std::string_view BytesAt(const ColumnView& column, size_t row) {
  return column.bytes.substr(static_cast<size_t>(column.offsets[row]),
                             static_cast<size_t>(column.offsets[row + 1] - column.offsets[row]));
}

void ExpectRow(const BatchView& batch, size_t at, const TestRow& row) {
  const auto& columns = batch.columns;
  EXPECT_EQ(BytesAt(columns[0], at), row.row);
  ASSERT_EQ(IsValid(columns[1], at), row.text.has_value());
  if (row.text) {
    EXPECT_EQ(BytesAt(columns[1], at), *row.text);
  }
  ASSERT_EQ(IsValid(columns[2], at), row.n.has_value());
  if (row.n) {
    EXPECT_EQ(columns[2].numbers[at], *row.n);
  }
  EXPECT_EQ(columns[3].numbers[at], row.small);
  ASSERT_EQ(IsValid(columns[4], at), row.real.has_value());
  if (row.real) {
    EXPECT_EQ(std::bit_cast<double>(columns[4].numbers[at]), *row.real);
  }
  ASSERT_EQ(IsValid(columns[5], at), row.flag.has_value());
  if (row.flag) {
    EXPECT_EQ(columns[5].numbers[at], *row.flag ? 1 : 0);
  }
  EXPECT_EQ(columns[6].numbers[at], row.time);
}

template <typename T>
std::optional<T> Maybe(Random& random, T value) {
  return random.OneIn(3) ? std::nullopt : std::optional<T>(value);
}

std::vector<TestRow> RandomRows(Random& random, size_t count) {
  std::vector<TestRow> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({.row = random.HostileBytes(0, 20),
                    .text = Maybe(random, std::string(random.Below(9), 'a')),
                    .n = Maybe(random, static_cast<int64_t>(random.Next())),
                    .small = static_cast<int32_t>(random.Next()),
                    .real = Maybe(random, static_cast<double>(random.Below(1000)) / 8),
                    .flag = Maybe(random, random.OneIn(2)),
                    .time = static_cast<int64_t>(random.Next())});
  }
  return rows;
}

TEST(TablePipe, ASchemaIsReadBack) {
  const std::string frame = BeginFrame(kSchema);
  ASSERT_TRUE(frame.starts_with(kMagic));
  const std::string_view bytes = std::string_view(frame).substr(kMagic.size() + kFrameHeaderBytes);
  std::string problem;
  EXPECT_EQ(ReadSchema(bytes, problem), kSchema) << problem;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadSchema(bytes.substr(0, size), problem)) << size;
  }
  EXPECT_FALSE(ReadSchema(std::string(bytes) + "x", problem));
}

TEST(TablePipe, SchemasBeyondTheLimitsAreRefused) {
  const auto refused = [](const Schema& schema) {
    const std::string frame = BeginFrame(schema);
    std::string problem;
    return !ReadSchema(std::string_view(frame).substr(kMagic.size() + kFrameHeaderBytes), problem);
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({.columns = std::vector<Column>(kMaxColumns + 1, Column{"c"}), .notes = {}}));
  EXPECT_TRUE(refused({.columns = {{std::string(kMaxColumnNameBytes + 1, 'c')}}, .notes = {}}));
  EXPECT_TRUE(refused({.columns = {{"c", static_cast<ColumnType>(0)}}, .notes = {}}));
  EXPECT_TRUE(refused({.columns = {{"c", static_cast<ColumnType>(8)}}, .notes = {}}));
  EXPECT_TRUE(refused({.columns = {{"c"}}, .notes = {{"n", std::string(kMaxNoteBytes + 1, 't')}}}));
  EXPECT_FALSE(refused({.columns = std::vector<Column>(kMaxColumns, Column{"c"}), .notes = {}}));
}

TEST(TablePipe, BatchesAreReadBack) {
  Random random(Seed("TablePipe.BatchesAreReadBack"));
  BatchBuilder builder(kSchema);
  for (const size_t count : {1, 7, 8, 9, 64, 1000}) {
    const auto rows = RandomRows(random, count);
    for (const TestRow& row : rows) Add(builder, row);
    EXPECT_EQ(builder.rows(), count);
    const std::string frame = FrameOf(builder);
    EXPECT_GE(frame.size() + 7 * 16, builder.bytes());
    uint32_t header[2];
    std::memcpy(header, frame.data(), sizeof(header));
    EXPECT_EQ(header[0], static_cast<uint32_t>(FrameKind::kBatch));
    ASSERT_EQ(header[1], frame.size() - kFrameHeaderBytes);
    const Aligned bytes(std::string_view(frame).substr(kFrameHeaderBytes));
    std::string problem;
    const auto batch = ReadBatch(kSchema, bytes.view(), problem);
    ASSERT_TRUE(batch) << problem;
    ASSERT_EQ(batch->rows, count);
    for (size_t i = 0; i < count; ++i) ExpectRow(*batch, i, rows[i]);
    builder.Clear();
    EXPECT_EQ(builder.bytes(), 0u);
  }
}

TEST(TablePipe, ABatchThatIsCutOffIsRefused) {
  Random random(Seed("TablePipe.ABatchThatIsCutOffIsRefused"));
  BatchBuilder builder(kSchema);
  for (const TestRow& row : RandomRows(random, 20)) Add(builder, row);
  const std::string frame = FrameOf(builder);
  const std::string_view whole = std::string_view(frame).substr(kFrameHeaderBytes);
  std::string problem;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Aligned bytes(whole.substr(0, size));
    EXPECT_FALSE(ReadBatch(kSchema, bytes.view(), problem)) << size;
  }
  const Aligned longer(std::string(whole) + std::string(8, '\0'));
  EXPECT_FALSE(ReadBatch(kSchema, longer.view(), problem));
  EXPECT_EQ(problem, "a batch has more bytes than its columns");
}

/// Whatever bytes a batch has, what is read of it lies within them.
TEST(TablePipe, NoBytesLeadOutOfABatch) {
  Random random(Seed("TablePipe.NoBytesLeadOutOfABatch"));
  BatchBuilder builder(kSchema);
  for (const TestRow& row : RandomRows(random, 12)) Add(builder, row);
  const std::string frame = FrameOf(builder);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = frame.substr(kFrameHeaderBytes);
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    }
    const Aligned bytes(changed);
    std::string problem;
    const auto batch = ReadBatch(kSchema, bytes.view(), problem);
    if (!batch) {
      EXPECT_NE(problem, "");
      continue;
    }
    for (size_t row = 0; row < batch->rows; ++row) {
      for (const size_t column : {0, 1}) {
        const ColumnView& view = batch->columns[column];
        ASSERT_LE(view.offsets[row], view.offsets[row + 1]);
        ASSERT_LE(static_cast<size_t>(view.offsets[row + 1]), view.bytes.size());
      }
      ASSERT_LE(batch->columns[3].numbers[row], INT32_MAX);
      ASSERT_GE(batch->columns[3].numbers[row], INT32_MIN);
    }
  }
}

TEST(TablePipe, TheEndHasTheNumberOfRows) {
  const std::string frame = EndFrame(7'000'000'000);
  EXPECT_EQ(ReadEnd(std::string_view(frame).substr(kFrameHeaderBytes)), 7'000'000'000);
  EXPECT_EQ(ReadEnd(""), std::nullopt);
  EXPECT_EQ(ReadEnd(std::string(9, '\0')), std::nullopt);
}

}  // namespace
}  // namespace kvstore::pipe
