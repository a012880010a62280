#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kvstore::bench {

/// Fetches blobs of a bucket by the program curl, each into a file of a new folder, and syncs nothing: the
/// least that a restore from there must do. Credentials and endpoint are those of the environment.
///
/// url       "s3://BUCKET/PREFIX"
/// blobs     their names, below PREFIX; the URLs are signed for some minutes.
/// parallel  how many at a time.
///
/// UNAVAILABLE if there is no curl, or if it fails: its reason is on standard error.
absl::Status FetchByCurl(std::string_view url, const std::vector<std::string_view>& blobs, size_t parallel,
                         const std::filesystem::path& folder);

}  // namespace kvstore::bench
