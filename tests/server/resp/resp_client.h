#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvstore::testing {

/// A client of the Redis protocol that shows answers as text, so that tests can compare them:
///
///   OK  -ERR message  (5)  "bytes"  nil  ["a", (1)]  {"key": "value"}  ~[a, b]  ,5  ="text"
///
/// for a simple string, an error, a number, a bulk string, null, an array, a map, a set, a double and a
/// verbatim text. Sends and receives block, for half a minute at most.
class RespClient {
 public:
  /// Receive returns this when the server has closed the connection.
  static constexpr char kClosed[] = "(closed)";

  /// address  "127.0.0.1:port"
  explicit RespClient(const std::string& address);
  ~RespClient();
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;

  /// Sends a command and returns its answer.
  std::string Do(const std::vector<std::string>& words);
  /// The same; the words are separated by single blanks.
  std::string Do(std::string_view line);

  /// Returns a command as it is sent.
  static std::string Encode(const std::vector<std::string>& words);
  static std::string Encode(std::string_view line);
  /// Returns false if the server has closed the connection.
  bool Send(std::string_view bytes);
  /// Returns the next answer.
  std::string Receive();
  /// Waits for the end of the connection, whatever the server sends before; returns false if it does not
  /// come.
  bool IsClosed();
  /// Ends what is sent, or the whole connection with a reset.
  void EndSending();
  void Reset();

 private:
  /// Returns the next byte; nothing at the end.
  std::optional<char> ReadByte();
  std::optional<std::string> ReadLine();
  std::optional<std::string> ReadBulk(int64_t size);
  /// Returns elements within brackets, with `between` before each second one.
  std::string ReadElements(int64_t count, std::string_view brackets, std::string_view between);

  int socket_;
  std::string buffer_;
  size_t at_ = 0;
  bool closed_ = false;
  bool timed_out_ = false;
};

}  // namespace kvstore::testing
