#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvstore {

/// A file as embed.cmake has put it into the program.
struct EmbeddedFile {
  std::string_view name;
  std::string_view tag;
  const uint8_t* bytes;
  size_t size;
  const uint8_t* gzip;
  size_t gzip_size;
};

/// All of them. Defined by the source that embed.cmake makes.
std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace kvstore
