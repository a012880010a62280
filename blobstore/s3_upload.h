#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "blobstore/s3_client.h"
#include "blobstore/sha256.h"

namespace kvstore::s3 {

/// Returns the call that puts a blob of at most one piece, or one part of an upload. With its digest the
/// server checks what has arrived, and keeps it as the blob's checksum.
S3Call PutCall(std::string_view name, std::string_view bytes, const Sha256Digest& digest);

struct UploadResult {
  absl::Status status;
  BlobInfo sent;  ///< The blob as it was sent; complete unless an error came before the end.
  bool may_be_done =
      false;  ///< Whether the blob may be there although `status` is ALREADY_EXISTS or NOT_FOUND.
};

/// Puts a blob of several pieces by a multipart upload, which is aborted if it fails. Errors as FailureOf.
///
/// first   The first piece, which is full.
/// second  The second piece.
/// source  Where the pieces after these come from; another thread reads ahead.
UploadResult Upload(S3Client& client, std::string_view name, std::string first, std::string second,
                    const BlobSource& source, PutMode mode);

/// Fills `piece` with the next piece of a blob; it is shorter than kBlobPieceBytes only at the end.
absl::Status ReadPiece(const BlobSource& source, std::string& piece);

}  // namespace kvstore::s3
