#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "blobstore/blob_name.h"
#include "blobstore/credentials.h"
#include "blobstore/s3_location.h"

using namespace kvstore;

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// Returns the text up to the end of the line, and removes it.
std::string_view NextLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

void CheckLocation(std::string_view url, std::string_view endpoint) {
  const auto location = s3::LocateS3(url, {.endpoint = std::string(endpoint), .region = "eu-central-1"});
  if (!location.ok()) return;
  // The parts of a request have no character with which it could become another one, or go elsewhere.
  Require(location->host.find_first_of("/@?#%\\ \r\n") == std::string::npos);
  Require(location->server == "https://" + location->host || location->server == "http://" + location->host);
  Require(location->server.starts_with("https://") || location->is_local);
  Require(location->path == "/" || location->path == "/" + location->bucket + "/");
  std::string_view prefix = location->prefix;
  if (prefix.empty()) return;
  prefix.remove_suffix(1);
  Require(CheckBlobName(prefix).ok());
}

void CheckCredentials(std::string_view text) {
  const auto credentials = s3::ParseCredentials(text, "default");
  if (!credentials.ok()) {
    // A message with its line, and never the line's text.
    Require(credentials.status().message().size() < 200);
    return;
  }
  Require(!credentials->key_id.empty() && !credentials->secret.empty());
  for (const std::string& value : {credentials->key_id, credentials->secret, credentials->session_token})
    Require(std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 0x7F; }));
}

}  // namespace

/// Any URL of a bucket, any endpoint and any file of credentials are refused, or are what requests can be
/// made of. The input is a line with the URL, a line with the endpoint, and the file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view url = NextLine(text);
  const std::string_view endpoint = NextLine(text);
  CheckLocation(url, endpoint);
  CheckCredentials(text);
  return 0;
}
