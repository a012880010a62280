#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tests/hostile/connection.h"

namespace kvstore::testing {

/// An answer over HTTP/1.1. One that did not come as a whole has the status 0.
struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< By their names in lower case.
  std::string body;

  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false); }
  /// The code of the error that the answer has; empty if it has none.
  std::string code() const { return Error("code"); }
  std::string message() const { return Error("message"); }

 private:
  std::string Error(const char* part) const {
    const auto parsed = json();
    return parsed.is_object() && parsed.contains("error") ? parsed["error"].value(part, "") : "";
  }
};

using HttpHeaders = std::map<std::string, std::string>;

/// Returns a request as it is sent, with the length of its body.
inline std::string HttpRequest(const std::string& method, const std::string& target,
                               const std::string& body = "", const HttpHeaders& headers = {}) {
  std::string text = method + " " + target + " HTTP/1.1\r\n";
  if (!headers.contains("Host")) text += "Host: localhost\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (method != "GET") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

/// Returns bytes as a chunk of a body; of nothing, the last one.
inline std::string HttpChunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

/// A connection over which requests are made, which blocks. AnyConnection is Connection or TlsConnection.
template <typename AnyConnection>
class BasicHttpClient {
 public:
  template <typename... Arguments>
  explicit BasicHttpClient(Arguments&&... arguments) : connection_(std::forward<Arguments>(arguments)...) {}

  /// Sends bytes; returns false if the server has closed the connection.
  bool Send(std::string_view bytes) { return connection_.Send(bytes); }
  void End() { connection_.End(); }
  AnyConnection& connection() { return connection_; }

  /// Reads the next answer, or one in parts: its head first, and then its chunks.
  HttpAnswer Read() {
    HttpAnswer answer = ReadHead();
    if (answer.status == 0) return answer;
    if (answer.headers.contains("transfer-encoding")) {
      for (std::string chunk; ReadChunk(chunk);) answer.body += chunk;
      if (!whole_) answer.status = 0;
      return answer;
    }
    const auto length = answer.headers.find("content-length");
    const size_t size = length == answer.headers.end() ? 0 : std::stoul(length->second);
    if (!Fill(size)) return {};
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return answer;
  }
  HttpAnswer ReadHead() {
    size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return {};
    }
    HttpAnswer answer;
    std::string head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    answer.status = std::atoi(head.substr(head.find(' ') + 1).c_str());
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t stop = head.find("\r\n", at);
      const size_t colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      answer.headers[name] = head.substr(colon + 2, stop - colon - 2);
      at = stop + 2;
    }
    return answer;
  }
  /// Reads a chunk; returns false at the end, or if the connection ends first.
  bool ReadChunk(std::string& chunk) {
    whole_ = false;
    size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!More()) return false;
    }
    const size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
    buffer_.erase(0, end + 2);
    if (!Fill(size + 2)) return false;
    chunk = buffer_.substr(0, size);
    buffer_.erase(0, size + 2);
    whole_ = true;
    return size > 0;
  }
  /// Returns whether the server closes the connection without another byte.
  bool IsClosed() { return buffer_.empty() && !More(); }

  HttpAnswer Ask(const std::string& method, const std::string& target, const std::string& body = "",
                 const HttpHeaders& headers = {}) {
    Send(HttpRequest(method, target, body, headers));
    return Read();
  }
  HttpAnswer Get(const std::string& target, const HttpHeaders& headers = {}) {
    return Ask("GET", target, "", headers);
  }
  /// Asks for an operation.
  HttpAnswer Post(const std::string& operation, const nlohmann::json& fields,
                  const HttpHeaders& headers = {}) {
    return Ask("POST", "/v1/" + operation, fields.dump(), headers);
  }

 private:
  bool More() {
    const std::string more = connection_.Read();
    buffer_ += more;
    return !more.empty();
  }
  bool Fill(size_t size) {
    while (buffer_.size() < size) {
      if (!More()) return false;
    }
    return true;
  }

  AnyConnection connection_;
  std::string buffer_;
  bool whole_ = false;
};

using HttpClient = BasicHttpClient<Connection>;

}  // namespace kvstore::testing
