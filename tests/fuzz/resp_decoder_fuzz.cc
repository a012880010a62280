#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "server/resp/protocol/decoder.h"

/// Any bytes from a connection are commands within the limits, or an error; the same ones in whatever pieces
/// they arrive; and the memory that they take is bounded by what has arrived.
namespace {

using kvstore::server::resp::Decoder;
using kvstore::server::resp::DecoderLimits;

using Commands = std::vector<std::vector<std::string>>;

constexpr DecoderLimits kLimits{
    .argument_bytes = 4096, .arguments = 64, .command_bytes = 8192, .inline_bytes = 512};

struct Decoded {
  Commands commands;
  std::string error;
};

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckWithinLimits(const std::vector<std::string_view>& arguments) {
  Check(!arguments.empty() && arguments.size() <= kLimits.arguments);
  for (const std::string_view argument : arguments) Check(argument.size() <= kLimits.argument_bytes);
}

/// Decodes bytes that arrive in pieces of at most this size.
Decoded Decode(std::string_view bytes, size_t piece) {
  Decoder decoder(kLimits);
  Decoded decoded;
  std::vector<std::string_view> arguments;
  while (!bytes.empty()) {
    const auto room = decoder.Prepare();
    const size_t some = std::min({room.size(), bytes.size(), piece});
    std::memcpy(room.data(), bytes.data(), some);
    decoder.Commit(some);
    bytes.remove_prefix(some);
    for (;;) {
      const Decoder::State state = decoder.Next(arguments);
      if (state == Decoder::State::kError) {
        Check(!decoder.error().empty());
        decoded.error = decoder.error();
        return decoded;
      }
      if (state == Decoder::State::kMore) break;
      CheckWithinLimits(arguments);
      decoded.commands.emplace_back(arguments.begin(), arguments.end());
    }
    // A command of the limits, in a buffer that doubles, and its arguments.
    Check(decoder.memory() <= 128 * 1024);
  }
  return decoded;
}

std::string Encode(const Commands& commands) {
  std::string bytes;
  for (const auto& words : commands) {
    bytes += "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{1} + data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Decoded whole = Decode(bytes, SIZE_MAX);
  const Decoded pieces = Decode(bytes, piece);
  Check(pieces.commands == whole.commands && pieces.error == whole.error);
  // Decoded commands mean the same when they are sent as clients send them.
  const Decoded again = Decode(Encode(whole.commands), piece);
  Check(again.commands == whole.commands && again.error.empty());
  return 0;
}
