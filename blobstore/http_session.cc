#include "blobstore/http_session.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/trim.h"

namespace kvstore::s3 {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
constexpr long kSlowestBytesPerSecond = 1024;

/// Returns text that came over the network, or from a library, on one line and not too long.
std::string OneLine(std::string_view text) {
  std::string line(text.substr(0, 300));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c == 0x7F; }, ' ');
  return line;
}

/// Whether the same exchange, begun again, would fail in the same way.
bool IsForGood(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return true;
    default:
      return false;
  }
}

}  // namespace

/// An exchange that runs, with what libcurl needs of it.
struct HttpSession::Transfer {
  explicit Transfer(HttpExchange& running) : exchange(running), easy(curl_easy_init()) {
    for (const std::string& header : exchange.headers) headers = curl_slist_append(headers, header.c_str());
  }
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  static size_t Send(char* to, size_t size, size_t count, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    const size_t bytes = std::min(size * count, self.exchange.body.size() - self.sent);
    std::memcpy(to, self.exchange.body.data() + self.sent, bytes);
    self.sent += bytes;
    return bytes;
  }

  /// libcurl sends a body again from its beginning if a kept connection turns out to be dead.
  static int Seek(void* user, curl_off_t offset, int origin) {
    auto& self = *static_cast<Transfer*>(user);
    if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > self.exchange.body.size()) {
      return CURL_SEEKFUNC_FAIL;
    }
    // The server may have carried out what it was sent over the connection that ended.
    if (self.sent > 0) self.exchange.sent_before = true;
    self.sent = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }

  static size_t TakeHeader(char* text, size_t size, size_t count, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    const std::string_view line(text, size * count);
    self.header_bytes += line.size();
    if (self.header_bytes > kMaxHeaderBytes) {
      self.exchange.stopped =
          absl::DataLossError(fmt::format("the answer has more than {} bytes of headers", kMaxHeaderBytes));
      return 0;
    }
    // Before the final answer there may be one that says "100 Continue".
    if (line.starts_with("HTTP/")) self.exchange.answer_headers.clear();
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return line.size();
    std::string name(line.substr(0, colon));
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    self.exchange.answer_headers[std::move(name)] = Trimmed(line.substr(colon + 1));
    return line.size();
  }

  static size_t TakeBody(char* text, size_t size, size_t count, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    HttpExchange& exchange = self.exchange;
    const std::string_view bytes(text, size * count);
    long status = 0;
    curl_easy_getinfo(self.easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange.on_bytes != nullptr && status / 100 == 2) {
      exchange.stopped = exchange.on_bytes(bytes);
    } else if (bytes.size() > exchange.max_answer_bytes - exchange.answer.size()) {
      exchange.stopped = absl::DataLossError(fmt::format(
          "the answer is larger than the {} bytes that are expected at most", exchange.max_answer_bytes));
    } else {
      exchange.answer += bytes;
    }
    return exchange.stopped.ok() ? bytes.size() : 0;
  }

  HttpExchange& exchange;
  CURL* const easy;
  curl_slist* headers = nullptr;
  size_t sent = 0;  // bytes of the body
  size_t header_bytes = 0;
  std::array<char, CURL_ERROR_SIZE> error{};
};

/// The handle of libcurl.
class HttpSession::Multi {
 public:
  Multi() : handle_(Create()) {}
  ~Multi() { curl_multi_cleanup(handle_); }
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;
  CURLM* get() const { return handle_; }

 private:
  static CURLM* Create() {
    // Thread-safe, as the initialisation of a static; libcurl's own is not in every build.
    static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
    (void)kInitialized;
    return curl_multi_init();
  }

  CURLM* const handle_;
};

HttpSession::HttpSession(const HttpOptions& options) : options_(options), multi_(std::make_unique<Multi>()) {
  curl_multi_setopt(multi_->get(), CURLMOPT_MAXCONNECTS, static_cast<long>(options_.connections));
}

HttpSession::~HttpSession() { EndAll(); }

void HttpSession::Begin(HttpExchange& exchange) {
  auto transfer = std::make_unique<Transfer>(exchange);
  CURL* const easy = transfer->easy;
  curl_easy_setopt(easy, CURLOPT_URL, exchange.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "kvstore");
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout_ms));
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, static_cast<long>(exchange.stall_timeout_ms / 1000)));
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  if (options_.no_proxy) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error.data());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::TakeHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::TakeBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  if (exchange.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (exchange.method == "PUT" || exchange.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange.method.c_str());
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(exchange.body.size()));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::Send);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer.get());
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::Seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer.get());
  } else {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange.method.c_str());
  }
  curl_multi_add_handle(multi_->get(), easy);
  transfers_[easy] = std::move(transfer);
}

HttpExchange* HttpSession::Wait(std::chrono::steady_clock::time_point until) {
  while (true) {
    int running = 0;
    curl_multi_perform(multi_->get(), &running);
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_->get(), &left)) {
      if (message->msg == CURLMSG_DONE) return Finish(message->easy_handle, message->data.result);
    }
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (time.count() <= 0) return nullptr;
    curl_multi_poll(multi_->get(), nullptr, 0, static_cast<int>(std::min<int64_t>(time.count(), 10'000)),
                    nullptr);
  }
}

HttpExchange* HttpSession::Finish(void* easy, int code) {
  const auto found = transfers_.find(easy);
  HttpExchange& exchange = found->second->exchange;
  long status = 0;
  curl_easy_getinfo(static_cast<CURL*>(easy), CURLINFO_RESPONSE_CODE, &status);
  exchange.status = static_cast<int>(status);
  exchange.failed = code != CURLE_OK;
  if (exchange.failed) {
    const auto curl_code = static_cast<CURLcode>(code);
    const std::string_view details = found->second->error.data();
    exchange.failure = OneLine(details.empty() ? curl_easy_strerror(curl_code) : details);
    exchange.failed_for_good = IsForGood(curl_code);
  }
  curl_multi_remove_handle(multi_->get(), static_cast<CURL*>(easy));
  transfers_.erase(found);
  return &exchange;
}

void HttpSession::EndAll() {
  for (const auto& [easy, transfer] : transfers_)
    curl_multi_remove_handle(multi_->get(), static_cast<CURL*>(easy));
  transfers_.clear();
}

}  // namespace kvstore::s3
