#pragma once

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kvstore::testing {

/// Returns the commands of a section of a page, each as its words after "kv": lines with "$ kv ".
///
/// section  The section's heading, with its "## ".
/// names    What stands in the page, and what is meant here.
inline std::vector<std::vector<std::string>> PageCommands(const std::string& page, const std::string& section,
                                                          const std::map<std::string, std::string>& names) {
  std::ifstream in(page);
  std::vector<std::vector<std::string>> commands;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) inside = line == section;
    const size_t at = line.find("$ kv ");
    if (!inside || at == std::string::npos) continue;
    line.erase(0, at + 5);
    for (const auto& [there, here] : names) {
      for (size_t i = line.find(there); i != std::string::npos; i = line.find(there, i + here.size())) {
        line.replace(i, there.size(), here);
      }
    }
    std::istringstream words(line);
    commands.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return commands;
}

}  // namespace kvstore::testing
