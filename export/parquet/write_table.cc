#include "export/parquet/write_table.h"

#include <arrow/api.h>
#include <arrow/util/utf8.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/parquet/output_pipe.h"
#include "export/parquet/pipe_input.h"
#include "export/pipe/table.h"

namespace kvstore::columnar {
namespace {

using pipe::Column;
using pipe::ColumnType;
using pipe::ColumnView;
using pipe::FrameKind;
using pipe::Schema;

std::shared_ptr<arrow::DataType> TypeOf(ColumnType type) {
  switch (type) {
    case ColumnType::kBytes:
      return arrow::binary();
    case ColumnType::kText:
      return arrow::utf8();
    case ColumnType::kInt64:
      return arrow::int64();
    case ColumnType::kInt32:
      return arrow::int32();
    case ColumnType::kDouble:
      return arrow::float64();
    case ColumnType::kBool:
      return arrow::boolean();
    case ColumnType::kTime:
      break;
  }
  return arrow::timestamp(arrow::TimeUnit::MILLI, "UTC");
}

std::shared_ptr<arrow::Schema> ArrowSchemaOf(const Schema& schema) {
  arrow::FieldVector fields;
  for (const Column& column : schema.columns) {
    fields.push_back(arrow::field(column.name, TypeOf(column.type), column.nullable));
  }
  return arrow::schema(std::move(fields));
}

std::shared_ptr<parquet::WriterProperties> PropertiesOf(const Schema& schema) {
  parquet::WriterProperties::Builder builder;
  // Arrow's own pool keeps what it has freed.
  builder.memory_pool(arrow::system_memory_pool())
      ->data_page_version(parquet::ParquetDataPageVersion::V1)
      ->encoding(parquet::Encoding::PLAIN)
      ->enable_dictionary()
      ->compression(arrow::Compression::ZSTD)
      ->max_row_group_length(static_cast<int64_t>(pipe::kMaxBatchRows))
      ->disable_write_page_index()
      ->set_size_statistics_level(parquet::SizeStatisticsLevel::None)
      ->disable_statistics();
  for (const Column& column : schema.columns) {
    const bool is_whole = column.type == ColumnType::kInt64 || column.type == ColumnType::kInt32 ||
                          column.type == ColumnType::kTime;
    if (is_whole) builder.enable_statistics(column.name);
  }
  return builder.build();
}

std::shared_ptr<arrow::Buffer> BufferOf(const void* data, size_t size) {
  return std::make_shared<arrow::Buffer>(static_cast<const uint8_t*>(data), static_cast<int64_t>(size));
}

/// The values of a column whose type is narrower than the numbers of the pipe.
arrow::Result<std::shared_ptr<arrow::Buffer>> Narrowed(ColumnType type, const ColumnView& view, size_t rows) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  if (type == ColumnType::kInt32) {
    ARROW_ASSIGN_OR_RAISE(auto buffer,
                          arrow::AllocateBuffer(static_cast<int64_t>(rows * sizeof(int32_t)), pool));
    auto* const to = reinterpret_cast<int32_t*>(buffer->mutable_data());
    for (size_t i = 0; i < rows; ++i) to[i] = static_cast<int32_t>(view.numbers[i]);
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  ARROW_ASSIGN_OR_RAISE(auto bits, arrow::AllocateEmptyBitmap(static_cast<int64_t>(rows), pool));
  uint8_t* const to = bits->mutable_data();
  for (size_t i = 0; i < rows; ++i) {
    if (view.numbers[i] != 0) to[i / 8] = static_cast<uint8_t>(to[i / 8] | 1 << i % 8);
  }
  return bits;
}

/// The values of a column of a batch as an array, which points into the batch.
arrow::Result<std::shared_ptr<arrow::Array>> ArrayOf(const Column& column, const ColumnView& view,
                                                     size_t rows) {
  std::shared_ptr<arrow::Buffer> validity;
  if (view.validity != nullptr) validity = BufferOf(view.validity, (rows + 7) / 8);
  std::vector<std::shared_ptr<arrow::Buffer>> buffers = {std::move(validity)};
  if (pipe::HasBytes(column.type)) {
    buffers.push_back(BufferOf(view.offsets, (rows + 1) * sizeof(int32_t)));
    buffers.push_back(BufferOf(view.bytes.data(), view.bytes.size()));
  } else if (column.type == ColumnType::kInt32 || column.type == ColumnType::kBool) {
    ARROW_ASSIGN_OR_RAISE(auto narrowed, Narrowed(column.type, view, rows));
    buffers.push_back(std::move(narrowed));
  } else {
    buffers.push_back(BufferOf(view.numbers, rows * sizeof(int64_t)));
  }
  const int64_t nulls = column.nullable ? arrow::kUnknownNullCount : 0;
  auto array = arrow::MakeArray(
      arrow::ArrayData::Make(TypeOf(column.type), static_cast<int64_t>(rows), std::move(buffers), nulls));
  // This also finds text that is not UTF-8, which no reader would take.
  if (column.type == ColumnType::kText) ARROW_RETURN_NOT_OK(array->ValidateFull());
  return array;
}

arrow::Status WriteBatch(const Schema& schema, const pipe::BatchView& batch,
                         parquet::arrow::FileWriter& writer) {
  ARROW_RETURN_NOT_OK(writer.NewRowGroup());
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(const auto array, ArrayOf(schema.columns[i], batch.columns[i], batch.rows));
    ARROW_RETURN_NOT_OK(writer.WriteColumnChunk(*array));
  }
  return arrow::Status::OK();
}

arrow::Result<Schema> ReadSchemaFrame(PipeInput& input) {
  ARROW_RETURN_NOT_OK(input.ReadMagic());
  ARROW_ASSIGN_OR_RAISE(const PipeInput::Frame frame, input.Next());
  if (frame.kind != FrameKind::kSchema) {
    return arrow::Status::Invalid("the first frame of a table is not that of its schema");
  }
  std::string problem;
  auto schema = pipe::ReadSchema(frame.bytes, problem);
  if (!schema) return arrow::Status::Invalid(problem);
  for (const Column& column : schema->columns) {
    if (!arrow::util::ValidateUTF8(column.name)) {
      return arrow::Status::Invalid("the name of a column is not UTF-8");
    }
  }
  return *std::move(schema);
}

/// Writes the batches up to the end of the table.
arrow::Status WriteBatches(const Schema& schema, PipeInput& input, parquet::arrow::FileWriter& writer) {
  uint64_t rows = 0;
  for (;;) {
    ARROW_ASSIGN_OR_RAISE(const PipeInput::Frame frame, input.Next());
    if (frame.kind == FrameKind::kSchema) return arrow::Status::Invalid("a table has a second schema");
    if (frame.kind == FrameKind::kEnd) {
      const auto expected = pipe::ReadEnd(frame.bytes);
      if (expected == rows) return input.CheckEnd();
      return arrow::Status::Invalid("the table's last frame does not have the number of its rows, ", rows);
    }
    std::string problem;
    const auto batch = pipe::ReadBatch(schema, frame.bytes, problem);
    if (!batch) return arrow::Status::Invalid(problem);
    ARROW_RETURN_NOT_OK(WriteBatch(schema, *batch, writer));
    rows += batch->rows;
  }
}

/// Writes the rest of a table, and ends the file.
arrow::Status WriteRest(const Schema& schema, PipeInput& input, parquet::arrow::FileWriter& writer) {
  ARROW_RETURN_NOT_OK(WriteBatches(schema, input, writer));
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const auto& [name, text] : schema.notes) {
    names.push_back(name);
    texts.push_back(text);
  }
  // The metadata of Arrow's schema would be lost: it is stored only together with that schema.
  ARROW_RETURN_NOT_OK(
      writer.AddKeyValueMetadata(arrow::key_value_metadata(std::move(names), std::move(texts))));
  return writer.Close();
}

}  // namespace

arrow::Status WriteTable(int in, int out) {
  arrow::util::InitializeUTF8();
  PipeInput input(in);
  ARROW_ASSIGN_OR_RAISE(const Schema schema, ReadSchemaFrame(input));
  const auto output = std::make_shared<OutputPipe>(out);
  ARROW_ASSIGN_OR_RAISE(const auto writer,
                        parquet::arrow::FileWriter::Open(*ArrowSchemaOf(schema), arrow::system_memory_pool(),
                                                         output, PropertiesOf(schema)));
  const arrow::Status written = WriteRest(schema, input, *writer);
  if (written.ok()) return output->Close();
  ARROW_RETURN_NOT_OK(output->Abort());
  return written;
}

}  // namespace kvstore::columnar
