#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/hostile/connection.h"

/// Frames of HTTP/2 (RFC 9113), made by hand, because no client library sends such.
namespace kvstore::testing::http2 {

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9
};
inline constexpr uint8_t kEndStream = 1;  // of kData and kHeaders
inline constexpr uint8_t kAck = 1;        // of kSettings and kPing
inline constexpr uint8_t kEndHeaders = 4;

inline std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline std::string Frame(Type type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string text = BigEndian(static_cast<uint32_t>(payload.size()), 3);
  text += static_cast<char>(type);
  text += static_cast<char>(flags);
  return (text += BigEndian(stream, 4)).append(payload);
}

/// Returns the preface and the settings with which every client begins.
///
/// window  How many bytes of a stream the other side may send before it is allowed more.
inline std::string Preface(uint32_t window = 65'535) {
  // Setting 4 is SETTINGS_INITIAL_WINDOW_SIZE.
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, BigEndian(4, 2) + BigEndian(window, 4));
}

/// Returns a header that is neither compressed nor indexed. Its name and value have at most 126 bytes each.
inline std::string Header(std::string_view name, std::string_view value) {
  std::string text(1, '\0');
  for (const std::string_view part : {name, value}) (text += static_cast<char>(part.size())).append(part);
  return text;
}

/// Returns the headers of a gRPC call without a token.
inline std::string CallHeaders(std::string_view path) {
  return Header(":method", "POST") + Header(":scheme", "http") + Header(":path", path) +
         Header(":authority", "localhost") + Header("te", "trailers") +
         Header("content-type", "application/grpc");
}

/// Returns a header that the receiver also puts into its table, in which the last one has index 62.
inline std::string IndexedHeader(std::string_view name, std::string_view value) {
  std::string text = Header(name, value);
  text[0] = 0x40;
  return text;
}

/// Returns the frames that open calls of the same method and reset them at once, so many from the one with
/// this number on. Each takes 28 bytes, but for the first of a connection, which has number 0.
inline std::string ShortResetCalls(uint32_t from, uint32_t count, std::string_view path) {
  constexpr uint32_t kCancel = 8;
  // POST and http are in the table of the standard.
  const std::string first = "\x83\x86" + IndexedHeader(":path", path) +
                            IndexedHeader(":authority", "localhost") + IndexedHeader("te", "trailers") +
                            IndexedHeader("content-type", "application/grpc");
  std::string calls;
  for (uint32_t i = from; i < from + count; ++i) {
    calls += Frame(kHeaders, kEndHeaders, 2 * i + 1, i == 0 ? first : "\x83\x86\xc1\xc0\xbf\xbe");
    calls += Frame(kReset, 0, 2 * i + 1, BigEndian(kCancel, 4));
  }
  return calls;
}

/// Returns the frame that opens a call, without any of its request.
inline std::string OpenCall(uint32_t stream, std::string_view path) {
  return Frame(kHeaders, kEndHeaders, stream, CallHeaders(path));
}

/// Returns the frame that resets a stream.
inline std::string Reset(uint32_t stream) {
  constexpr uint32_t kCancel = 8;
  return Frame(kReset, 0, stream, BigEndian(kCancel, 4));
}

/// Reads what a server sends, frame by frame.
class Reader {
 public:
  struct Received {
    Type type = kData;
    uint8_t flags = 0;
    uint32_t stream = 0;
    std::string payload;
  };

  explicit Reader(const Connection& connection) : connection_(connection) {}

  /// Waits for the next frame. Returns false if the connection was closed.
  bool Next(Received& frame) {
    if (!Fill(kHead)) return false;
    const size_t size = Number(0, 3);
    frame.type = static_cast<Type>(bytes_[3]);
    frame.flags = static_cast<uint8_t>(bytes_[4]);
    frame.stream = Number(5, 4);
    if (!Fill(kHead + size)) return false;
    frame.payload = bytes_.substr(kHead, size);
    bytes_.erase(0, kHead + size);
    return true;
  }

 private:
  static constexpr size_t kHead = 9;

  uint32_t Number(size_t at, size_t size) const {
    uint32_t value = 0;
    for (size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[i]);
    return value;
  }
  bool Fill(size_t size) {
    while (bytes_.size() < size) {
      const std::string more = connection_.Read();
      if (more.empty()) return false;
      bytes_ += more;
    }
    return true;
  }

  const Connection& connection_;
  std::string bytes_;
};

}  // namespace kvstore::testing::http2
