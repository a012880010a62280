#pragma once

#include <grpcpp/client_context.h>

#include <memory>
#include <optional>
#include <string>

#include "client/caller.h"
#include "kvstore_api/kvstore.h"
#include "wire/packed_rows.h"

namespace kvstore::client {

/// A scan over the network. When the server is lost and comes back it goes on after the last row. Externally
/// synchronised.
class Cursor : public RowCursor {
 public:
  Cursor(Caller& caller, v1::ScanRowsRequest request);
  ~Cursor() override;

  /// Waits for the first answer, so that mistakes in the request are reported here.
  absl::Status Open();
  absl::StatusOr<bool> Next(ScannedRow& row) override;
  std::string marker() const override;

 private:
  /// One RPC of the scan.
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderInterface<v1::ScanRowsResponse>> reader;
    bool empty = false;  ///< A message without rows has come.
  };

  /// Reads the next message that has rows, or with `any` the next message. Returns false at the end. In a
  /// ScanBudget (scan_budget.h) it returns a PausedError where the server has found nothing so far.
  absl::StatusOr<bool> ReadMessage(bool any);
  /// Returns whether message_ has rows that were not returned.
  bool HasRows() const { return packed_.has_next() || next_ < message_.rows_size(); }

  Caller& caller_;
  std::string start_;            // the marker to read on from while no row was returned
  v1::ScanRowsRequest request_;  // its marker is where the message that is read next begins
  std::unique_ptr<Stream> stream_;
  v1::ScanRowsResponse message_;
  int next_ = 0;                   // of the message's rows
  wire::PackedRowsReader packed_;  // of the message
  uint64_t incarnation_ = 0;
  std::string last_key_;  // of the row that was returned last; empty before
  bool ended_ = false;
  int failures_ = 0;  // since the last message
};

}  // namespace kvstore::client
