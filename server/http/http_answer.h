#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvstore::server {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kJsonLinesType = "application/x-ndjson";
inline constexpr std::string_view kEventsType = "text/event-stream";

/// The head of an answer.
struct AnswerHead {
  int status = 200;
  std::string_view type = kJsonType;  ///< Empty: there is no body.
  std::optional<size_t> length;       ///< The bytes of the body; nothing: it is chunked.
  std::string_view cache =
      "no-store";  ///< Cache-Control. Answers are data of callers: no cache may keep them.
  bool keep_alive = true;
  std::string_view instance = {};  ///< The server's instance, in hexadecimal digits.
  std::string_view origin = {};    ///< The origin whose pages may read the answer; empty: none.
  std::string more = {};           ///< Further lines, each with its end.
};

/// Returns the head as it is sent.
std::string WriteHead(const AnswerHead& head);

/// Returns the status of HTTP for an error: 400, 401, 403, 404, 409, 412, 429, 499 (the client is gone), 500,
/// 501, 503 or 504; 200 for OK.
int HttpStatusOf(const absl::Status& status);
/// Returns the lines that the error adds to the head: Retry-After where nothing was done and a retry may
/// succeed, and WWW-Authenticate.
std::string LinesOf(const absl::Status& status);
/// Returns the error as the body of an answer.
std::string BodyOf(const absl::Status& status);

/// Returns bytes as a chunk of a body. They must not be empty: an empty chunk is the end.
std::string ChunkOf(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace kvstore::server
