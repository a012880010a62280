#include "blobstore/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "base/trim.h"
#include "blobstore/descriptor.h"

namespace kvstore::s3 {
namespace {

constexpr size_t kMaxFileBytes = size_t{64} << 10;

/// Whether a value can stand in a header: another one could add headers to each request.
bool IsPlain(std::string_view value) {
  return value.size() <= 8192 &&
         std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<Credentials> EnvironmentCredentials() {
  Credentials found{FromEnvironment("AWS_ACCESS_KEY_ID"), FromEnvironment("AWS_SECRET_ACCESS_KEY"),
                    FromEnvironment("AWS_SESSION_TOKEN")};
  if (found.key_id.empty() || found.secret.empty()) {
    return absl::FailedPreconditionError(
        "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
        "credentials file");
  }
  if (!IsPlain(found.key_id) || !IsPlain(found.secret) || !IsPlain(found.session_token)) {
    return absl::InvalidArgumentError(
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN holds a space or a character that is "
        "not printable ASCII");
  }
  return found;
}

absl::Status CheckFile(const std::filesystem::path& file, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("credentials file {} is not a file", file.string()));
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("credentials file {} can be used by others than its owner: chmod 600 {}", file.string(),
                    file.string()));
  }
  if (status.st_size > static_cast<off_t>(kMaxFileBytes)) {
    return absl::InvalidArgumentError(fmt::format("credentials file {} has {} bytes; at most {} are allowed",
                                                  file.string(), status.st_size, kMaxFileBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, const std::filesystem::path& file) {
  std::string text(kMaxFileBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t read = ::read(fd, text.data() + size, text.size() - size);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return FileError(file, "read", errno);
    if (read == 0) break;
    size += static_cast<size_t>(read);
  }
  text.resize(size);
  return text;
}

bool IsSameVersion(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mode == b.st_mode &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<Credentials> ParseCredentials(std::string_view text, std::string_view profile) {
  Credentials found;
  bool in_profile = false;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      if (!line.ends_with(']'))
        return absl::InvalidArgumentError(fmt::format("line {}: a '[' without ']'", number));
      in_profile = Trimmed(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    if (!in_profile) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return absl::InvalidArgumentError(fmt::format("line {}: no '='", number));
    const std::string_view name = Trimmed(line.substr(0, equals));
    const std::string_view value = Trimmed(line.substr(equals + 1));
    if (!IsPlain(value)) {
      return absl::InvalidArgumentError(fmt::format(
          "line {}: the value is too long, or holds a space or a character that is not printable ASCII",
          number));
    }
    if (name == "aws_access_key_id") found.key_id = value;
    if (name == "aws_secret_access_key") found.secret = value;
    if (name == "aws_session_token") found.session_token = value;
  }
  if (found.key_id.empty() || found.secret.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("profile '{}' has no aws_access_key_id and aws_secret_access_key", profile));
  }
  return found;
}

absl::StatusOr<Credentials> CredentialSource::Current() {
  if (file_.empty()) return EnvironmentCredentials();
  const Descriptor opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.is_open()) {
    const int error = errno;
    const absl::Status status = FileError(file_, "read the credentials in", error);
    return error == ENOENT ? absl::NotFoundError(status.message()) : status;
  }
  struct stat now {};
  if (::fstat(opened.get(), &now) != 0) return FileError(file_, "look at", errno);
  if (auto status = CheckFile(file_, now); !status.ok()) return status;
  const MutexLock lock(mutex_);
  if (!read_.key_id.empty() && IsSameVersion(now, read_from_)) return read_;
  const auto text = ReadAll(opened.get(), file_);
  if (!text.ok()) return text.status();
  auto parsed = ParseCredentials(*text, profile_);
  if (!parsed.ok()) {
    return absl::Status(parsed.status().code(), fmt::format("credentials file {}: {}", file_.string(),
                                                            std::string(parsed.status().message())));
  }
  read_ = *std::move(parsed);
  read_from_ = now;
  return read_;
}

}  // namespace kvstore::s3
