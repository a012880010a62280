#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backup/manifest.h"
#include "blobstore/sha256.h"

using namespace kvstore;

/// Any bytes as the manifest of a backup, with the checksum that it must have, are refused, or read back the
/// same after they are written, and no path leaves the folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kId = "20261124T031459Z-1a2b3c4d";
  const std::string line(reinterpret_cast<const char*>(data), size);
  const std::string text = line + "\n{\"sha256\":\"" + Hex(Sha256Of(line)) + "\"}\n";
  const auto manifest = backup::DecodeManifest(text, kId);
  if (!manifest.ok()) return 0;
  for (const backup::BackedUpFile& file : manifest->files) {
    if (file.path.empty() || file.path.front() == '/' || file.path.find("..") == 0) std::abort();
    if (file.path.find("/.") != std::string::npos) std::abort();
  }
  const auto again = backup::DecodeManifest(backup::EncodeManifest(*manifest), kId);
  if (!again.ok() || *again != *manifest) std::abort();
  return 0;
}
