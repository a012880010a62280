#include "server/http/byte_stream.h"

#include <openssl/x509.h>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace kvstore::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)) {}

  void Handshake(std::function<void(Error)> done) override { done({}); }
  void ReadSome(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, std::move(done));
  }
  void WriteSome(asio::const_buffer buffer, Done done) override {
    socket_.async_write_some(buffer, std::move(done));
  }
  void EndSending(std::function<void()> gone) override {
    Error error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    if (error) asio::post(socket_.get_executor(), std::move(gone));
  }
  std::string CommonName() override { return ""; }
  tcp::socket& socket() override { return socket_; }

 private:
  tcp::socket socket_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(tcp::socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

  void Handshake(std::function<void(Error)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void ReadSome(asio::mutable_buffer buffer, Done done) override {
    stream_.async_read_some(buffer, std::move(done));
  }
  void WriteSome(asio::const_buffer buffer, Done done) override {
    stream_.async_write_some(buffer, std::move(done));
  }
  void EndSending(std::function<void()> gone) override {
    stream_.async_shutdown([gone = std::move(gone)](Error) { gone(); });
  }
  std::string CommonName() override {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(stream_.native_handle()), &X509_free);
    if (!certificate || SSL_get_verify_result(stream_.native_handle()) != X509_V_OK) return "";
    const X509_NAME* const subject = X509_get_subject_name(certificate.get());
    const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (place < 0) return "";
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
    if (size < 0) return "";
    std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
    return name;
  }
  tcp::socket& socket() override { return stream_.next_layer(); }

 private:
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> ByteStream::Make(tcp::socket socket, asio::ssl::context* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(std::move(socket));
  return std::make_unique<TlsStream>(std::move(socket), *tls);
}

}  // namespace kvstore::server
