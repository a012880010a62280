#include "export/parquet/print_lines.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/utf8.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "export/parquet/cell_text.h"
#include "export/parquet/line_printers.h"
#include "export/parquet/output_pipe.h"

namespace kvstore::columnar {
namespace {

/// So many rows are decoded at a time.
constexpr int64_t kBatchRows = 4096;
constexpr int64_t kReadBytes = int64_t{1} << 20;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void AddLeaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) AddLeaves(child, leaves);
}

/// The leaves of the columns that are read. Invalid if one of them cannot be.
arrow::Result<std::vector<int>> ChooseLeaves(const parquet::arrow::SchemaManifest& manifest,
                                             const LineOptions& options) {
  std::vector<int> leaves;
  for (const auto& field : manifest.schema_fields) {
    if (Contains(options.without, field.field->name())) continue;
    if (!CanRead(*field.field->type())) {
      return arrow::Status::Invalid("column '", field.field->name(), "' is of type ",
                                    field.field->type()->ToString(), ", which is not read");
    }
    AddLeaves(field, leaves);
  }
  return leaves;
}

/// Returns the note that the file has about itself under a name; empty if it has none.
std::string NoteOf(const parquet::arrow::FileReader& reader, const std::string& name) {
  const auto notes = reader.parquet_reader()->metadata()->key_value_metadata();
  return notes == nullptr ? "" : notes->Get(name).ValueOr("");
}

std::vector<int> AllRowGroups(const parquet::arrow::FileReader& reader) {
  std::vector<int> groups;
  for (int i = 0; i < reader.num_row_groups(); ++i) groups.push_back(i);
  return groups;
}

arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> OpenReader(int in) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(in, pool));
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();
  properties.set_buffer_size(kReadBytes);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::move(file), properties));
  parquet::ArrowReaderProperties arrow_properties;
  arrow_properties.set_pre_buffer(false);
  arrow_properties.set_batch_size(kBatchRows);
  return builder.memory_pool(pool)->properties(arrow_properties)->Build();
}

}  // namespace

arrow::Status PrintLines(int in, int out, const LineOptions& options) {
  arrow::util::InitializeUTF8();
  ARROW_ASSIGN_OR_RAISE(const auto reader, OpenReader(in));
  if (options.form != LineForm::kPoints && !NoteOf(*reader, "kvstore.since").empty()) {
    return arrow::Status::Invalid("the file is of an export of what has changed since another one, '",
                                  NoteOf(*reader, "kvstore.since"), "', and only whole exports are imported");
  }
  ARROW_ASSIGN_OR_RAISE(const auto leaves, ChooseLeaves(reader->manifest(), options));
  ARROW_ASSIGN_OR_RAISE(const auto batches, reader->GetRecordBatchReader(AllRowGroups(*reader), leaves));
  OutputPipe output(out);
  ARROW_ASSIGN_OR_RAISE(const auto printer,
                        NewLinePrinter(options, NoteOf(*reader, "kvstore.form"), *batches->schema(), output));
  for (;;) {
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
    if (batch == nullptr) break;
    // The file may be of anybody, and what follows takes offsets as they are.
    ARROW_RETURN_NOT_OK(batch->Validate());
    ARROW_RETURN_NOT_OK(printer->Print(*batch));
  }
  ARROW_RETURN_NOT_OK(printer->Finish());
  return output.Close();
}

}  // namespace kvstore::columnar
