#include "tests/blobstore/s3_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"

namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;

/// Where ./dev puts them.
fs::path Versity() { return fs::path(KV_S3_SERVERS) / "go/bin/versitygw"; }
fs::path MotoPython() { return fs::path(KV_S3_SERVERS) / "venv-s3/bin/python"; }

}  // namespace

bool S3Server::IsVersity() { return fs::exists(Versity()); }
bool S3Server::IsInstalled() {
  return IsVersity() || fs::exists(fs::path(KV_S3_SERVERS) / "venv-s3/complete");
}

S3Server::S3Server(const Authority::Files* tls) : port_(FreePort()), has_tls_(tls != nullptr) {
  CredentialsFile("keys", key_id(), secret());
  std::vector<std::string> command;
  if (IsVersity()) {
    // A folder in the data folder is a bucket.
    fs::create_directories(dir_ / "data" / kBucket);
    fs::create_directories(dir_ / "metadata");
    command = {Versity().string(), "--access", key_id(),
               "--secret",         secret(),   "--quiet",
               "--keep-alive",     "--port",   fmt::format("127.0.0.1:{}", port_)};
    if (tls != nullptr) command.insert(command.end(), {"--cert", tls->cert, "--key", tls->key});
    // Metadata stand in a folder of their own, because not every /tmp has extended attributes.
    command.insert(command.end(),
                   {"posix", "--sidecar", (dir_ / "metadata").string(), (dir_ / "data").string()});
  } else {
    command = {MotoPython().string(), KV_MOTO_SCRIPT, std::to_string(port_), kBucket,
               (dir_ / "keys").string()};
  }
  process_ = ForkProgram(command, (dir_ / "log").string());
  if (!Eventually([&] { return Answers(); })) throw std::runtime_error("the S3 server does not start");
}

S3Server::~S3Server() {
  if (process_ > 0) Kill(process_);
}

bool S3Server::Answers() const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port_);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  // moto writes the keys of its user when it is ready.
  return connected && (IsVersity() || fs::exists(dir_ / "keys.ready"));
}

S3Options S3Server::options() const {
  S3Options options;
  options.endpoint = fmt::format("{}://127.0.0.1:{}", has_tls_ ? "https" : "http", port_);
  options.region = "us-east-1";
  options.credentials_file = dir_ / "keys";
  options.retry_for_ms = 2000;
  return options;
}

std::string S3Server::CredentialsFile(const std::string& name, const std::string& key_id,
                                      const std::string& secret) const {
  const std::string file = (dir_ / name).string();
  std::ofstream(file) << fmt::format("[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
                                     key_id, secret);
  ::chmod(file.c_str(), 0600);
  return file;
}

}  // namespace kvstore::testing
