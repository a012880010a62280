#include "console/console.h"

#include <map>

#include "console/embedded.h"

namespace kvstore {
namespace {

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/plain; charset=utf-8";
}

std::shared_ptr<const std::string> Copy(const uint8_t* bytes, size_t size) {
  return std::make_shared<const std::string>(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

const ConsoleFile* FindConsoleFile(std::string_view name) {
  static const auto& files = *[] {
    auto* const all = new std::map<std::string_view, ConsoleFile>;
    for (const EmbeddedFile& file : EmbeddedFiles()) {
      (*all)[file.name] = {.type = TypeOf(file.name),
                           .tag = file.tag,
                           .bytes = Copy(file.bytes, file.size),
                           .gzip = Copy(file.gzip, file.gzip_size)};
    }
    return all;
  }();
  const auto found = files.find(name);
  return found == files.end() ? nullptr : &found->second;
}

}  // namespace kvstore
