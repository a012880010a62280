#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend_api/marker.h"

/// Any bytes as a marker are refused, or are a position that is sealed to the same bytes again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvstore;
  const std::string_view marker(reinterpret_cast<const char*>(data), size);
  if (const auto position = OpenRowMarker(7, "user:1", marker); position.ok()) {
    if (SealRowMarker(7, "user:1", *position) != marker) std::abort();
  }
  if (const auto position = OpenScanMarker(7, marker); position.ok()) {
    if (SealScanMarker(7, *position) != marker) std::abort();
  }
  if (const auto last = OpenMappingMarker(7, 3, false, marker); last.ok()) {
    if (SealMappingMarker(7, 3, false, *last) != marker) std::abort();
  }
  if (const auto next = OpenObjectScanMarker(7, marker); next.ok()) {
    if (SealObjectScanMarker(7, *next) != marker) std::abort();
  }
  if (const auto next = OpenMappingScanMarker(7, marker); next.ok()) {
    if (SealMappingScanMarker(7, *next) != marker) std::abort();
  }
  return 0;
}
