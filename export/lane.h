#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backend_api/unit_reader.h"
#include "blobstore/blob_store.h"
#include "export/manifest.h"
#include "export/parquet_writer.h"
#include "export/pipe/batch_builder.h"
#include "export/row_maker.h"

namespace kvstore::exports {

/// One of the lanes in which an export is written: parts go one after another into its files, each of which
/// it puts when it is large enough. Externally synchronised.
class Lane : public RowSink {
 public:
  /// The part that all lanes of an export share. It must outlive them.
  struct Common {
    BlobStore& blobs;
    std::string program;  ///< kv-parquet.
    std::string id;       ///< The ID of the export.
    std::string data;     ///< The folder, below that of the export, in which files are put.
    pipe::Schema schema;
    /// Told the bytes of units that were read; its error ends the export.
    std::function<absl::Status(uint64_t bytes)> read;
  };

  /// number  tells its files from those of the others.
  Lane(const Common& common, std::unique_ptr<RowMaker> maker, size_t number)
      : common_(common), maker_(std::move(maker)), number_(number), rows_(common.schema) {}

  /// Writes a part.
  absl::Status Write(UnitScan& scan);
  /// Puts the last file, if there is one.
  absl::Status Finish() { return EndFile(); }
  /// Puts a file without rows, so that readers find the columns of an export that has none.
  absl::Status PutEmpty();

  /// The files that were put.
  const std::vector<ExportedFile>& files() const { return files_; }

  pipe::BatchBuilder& rows() override { return rows_; }
  absl::Status EndRow() override;

 private:
  absl::Status WriteUnits(std::vector<Unit>& units);
  /// Ends the row group, if it has rows, and the file if that is large enough then.
  absl::Status EndRowGroup();
  absl::Status EndFile();
  absl::Status StartFile();

  const Common& common_;
  const std::unique_ptr<RowMaker> maker_;
  const size_t number_;
  pipe::BatchBuilder rows_;                // of the row group
  size_t before_row_ = 0;                  // bytes of rows_ without the row that is being made
  std::string last_key_;                   // of the unit that was read last
  std::unique_ptr<ParquetWriter> writer_;  // of the file; null: none is begun
  std::vector<ExportedFile> files_;
};

}  // namespace kvstore::exports
