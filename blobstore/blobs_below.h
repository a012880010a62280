#pragma once

#include <memory>
#include <string>

#include "blobstore/blob_store.h"

namespace kvstore {

/// Returns a store of the blobs of another one whose names begin with a prefix, without that prefix.
///
/// prefix  ends with '/', and is otherwise the name of a blob: "datasets/events/".
std::unique_ptr<BlobStore> BlobsBelow(std::unique_ptr<BlobStore> blobs, std::string prefix);

}  // namespace kvstore
