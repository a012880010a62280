#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace kvstore {

/// A file of the console, as it is served. A value that lives as long as the process.
struct ConsoleFile {
  std::string_view type;  ///< "text/css; charset=utf-8"
  std::string_view tag;   ///< An entity tag of the bytes: another version of the file has another one.
  std::shared_ptr<const std::string> bytes;
  std::shared_ptr<const std::string> gzip;  ///< The same, compressed.
};

/// Returns the file of this name ("app.js"); null if there is none. The page that uses the others is
/// "index.html". Thread-safe.
const ConsoleFile* FindConsoleFile(std::string_view name);

}  // namespace kvstore
