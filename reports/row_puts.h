#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "reports/chunk_types.h"
#include "reports/metadata.h"
#include "reports/row_key.h"

namespace kvstore::reports {

/// A chunk that is to be written.
struct Part {
  ChunkName name;
  std::string bytes;
};

/// Sends chunks to their rows, many rows at a time, each put with the row's new version (rows.h). Externally
/// synchronised.
class RowPuts {
 public:
  /// repeatable  whether the write may be a repeated one: a part that is there already stays as it is, and
  ///             keeps its place among the chunks of its row.
  RowPuts(const Metadata& metadata, bool repeatable) : metadata_(metadata), repeatable_(repeatable) {}

  /// Takes the parts of a row; at least one. They are written by this or a later call.
  absl::Status Put(const RowKey& row, std::vector<Part> parts);
  /// Writes what has not been written yet. After an error some rows are written and others not.
  absl::Status Flush();
  /// Returns an error of this write, marked as in doubt (MarkInDoubt) once rows are written or may be.
  absl::Status ErrorOf(absl::Status error) const;

 private:
  struct Waiting {
    std::string row;
    std::vector<Part> parts;
  };
  /// Writes what waits. Parts that may be missing of a put that was tried before wait again, each alone.
  absl::Status Send();
  /// Takes what becomes one put.
  absl::Status PutOne(const RowKey& row, std::vector<Part> parts, size_t bytes);

  const Metadata& metadata_;
  const bool repeatable_;
  std::vector<Waiting> waiting_;
  size_t bytes_ = 0;  // that wait
  bool may_have_written_ = false;
};

}  // namespace kvstore::reports
