#include "server/http/byte_stream.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

#include "server/tls/common_name.h"

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
  TlsStream(tcp::socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

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
  std::string CommonName() override { return CommonNameOf(stream_.native_handle()); }
  tcp::socket& socket() override { return stream_.next_layer(); }

 private:
  const std::shared_ptr<asio::ssl::context> context_;
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> ByteStream::Make(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(std::move(socket));
  return std::make_unique<TlsStream>(std::move(socket), std::move(tls));
}

}  // namespace kvstore::server
