#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/log_reader.h"

/// Any bytes as the events of a binary log, each with its own length before it, and as a position: errors, or
/// items.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvstore::mysql;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  ChangePosition::Decode(rest).status().IgnoreError();
  LogVector::Parse(rest).status().IgnoreError();
  std::string event;
  LogReader reader(
      [&]() -> absl::StatusOr<std::string_view> {
        if (rest.empty()) return std::string_view();
        const size_t length = std::min<size_t>(static_cast<unsigned char>(rest[0]), rest.size() - 1);
        event = std::string(rest.substr(1, length));
        rest.remove_prefix(1 + length);
        // The size in the header is right, so that the fuzzer need not guess it.
        if (event.size() >= 13) {
          for (size_t i = 0; i < 4; ++i) event[9 + i] = static_cast<char>(event.size() >> (8 * i));
        }
        return std::string_view(event);
      },
      {}, [](const LoggedTable& table) { return table.Form() != TableForm::kOther; }, false);
  for (;;) {
    const auto item = reader.Next();
    if (!item.ok() || item->kind == LogItem::Kind::kEnd) return 0;
  }
}
