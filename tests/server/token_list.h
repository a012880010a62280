#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "server/call/access.h"

namespace kvstore::testing {

/// Writes a list of callers: their names, which are their tokens too, and their rights in JSON.
inline void WriteTokenList(const std::filesystem::path& file,
                           const std::map<std::string, std::string>& callers) {
  std::ofstream out(file);
  out << R"({"tokens": [)";
  const char* comma = "";
  for (const auto& [name, rights] : callers) {
    out << comma << R"({"name": ")" << name << R"(", "sha256": ")" << server::TokenDigest(name)
        << R"(", "rights": )" << rights << "}";
    comma = ", ";
  }
  out << "]}";
}

}  // namespace kvstore::testing
