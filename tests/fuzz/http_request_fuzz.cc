#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_text.h"
#include "json/value_count.h"
#include "server/http/line_splitter.h"
#include "server/http/routes.h"

using namespace kvstore;

namespace {

constexpr size_t kMaxLine = 40;

/// Cuts a text that comes in pieces of so many bytes.
std::vector<std::string> LinesOf(std::string_view text, size_t piece, bool& too_long) {
  server::LineSplitter splitter(kMaxLine);
  std::vector<std::string> lines;
  const auto take = [&] {
    while (auto line = splitter.Next()) lines.push_back(*std::move(line));
  };
  while (!text.empty() && !splitter.is_too_long()) {
    splitter.Append(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    take();
  }
  splitter.End();
  take();
  too_long = splitter.is_too_long();
  return lines;
}

}  // namespace

/// The first byte sets the size of the pieces. The first line of the rest is the target of a GET and of a
/// POST; the whole rest is split into lines, at once and in pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view target = bytes.substr(0, bytes.find('\n'));
  for (const char* method : {"GET", "POST"}) {
    const server::Route route = server::FindRoute(method, target);
    if ((route.kind == server::Route::Kind::kError) == route.error.ok()) std::abort();
    if (route.request) {
      // A request that came as bytes can be written as JSON.
      const std::string text = TextOf(*route.request);
      if (nlohmann::json::parse(text) != *route.request) std::abort();
      if (CountJsonValues(text) < route.request->size()) std::abort();
    }
  }
  bool too_long = false;
  bool pieces_too_long = false;
  const std::vector<std::string> lines = LinesOf(bytes, bytes.size() + 1, too_long);
  if (LinesOf(bytes, data[0] % 16 + 1, pieces_too_long) != lines || pieces_too_long != too_long) std::abort();
  for (const std::string& line : lines) {
    if (line.size() > kMaxLine || line.find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
