#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <random>
#include <utility>

#include "base/files.h"
#include "cli/command.h"
#include "cli/standard_output.h"

namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr std::array kEndingSignals = {SIGHUP, SIGINT, SIGTERM};

/// The name of the unfinished file, for the handler of signals, which has no arguments of ours.
std::array<char, PATH_MAX>& Unfinished() {
  static std::array<char, PATH_MAX> path{};
  return path;
}

void RemoveAndEnd(int signal) {
  ::unlink(Unfinished().data());
  // SA_RESETHAND has removed this handler, so now the signal ends the process as if there had been none.
  ::raise(signal);
}

void RemoveOnSignals(const std::string& path) {
  std::array<char, PATH_MAX>& unfinished = Unfinished();
  unfinished.fill('\0');
  path.copy(unfinished.data(), unfinished.size() - 1);
  for (const int signal : kEndingSignals) {
    struct sigaction before {};
    // A signal that is ignored, SIGHUP under nohup for instance, stays ignored.
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = RemoveAndEnd;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

void ForgetOnSignals() {
  for (const int signal : kEndingSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != RemoveAndEnd) continue;
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
}

/// Throws Failure unless a file may be put at `path`. A rename would replace a link or a device itself,
/// rather than what is written through it.
void CheckPlace(const std::string& path) {
  if (path.empty()) {
    throw Failure{
        absl::InvalidArgumentError("--to: the name is empty: name a file, or leave the option out")};
  }
  std::error_code error;
  switch (fs::symlink_status(path, error).type()) {
    case fs::file_type::regular:
    case fs::file_type::not_found:
    case fs::file_type::none:  // it cannot be looked at; making the file says why
      return;
    case fs::file_type::symlink:
      throw Failure{absl::InvalidArgumentError(
          fmt::format("--to: {} is a symbolic link, which is not followed; name the file itself", path))};
    case fs::file_type::directory:
      throw Failure{absl::InvalidArgumentError(fmt::format("--to: {} is a folder; name a file in it", path))};
    default:
      throw Failure{absl::InvalidArgumentError(fmt::format(
          "--to: {} is not a regular file; leave the option out, and redirect standard output to it", path))};
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path) {
  if (path == "-") return;
  CheckPlace(path);
  path_ = fs::absolute(path);
  // Two commands with the same --to have different files until each of them is complete.
  const std::string temporary = fmt::format("{}.{:08x}.new", path_.string(), std::random_device{}());
  if (temporary.size() >= PATH_MAX) throw Failure{FileError(path, "create", ENAMETOOLONG)};
  RemoveOnSignals(temporary);
  const auto file = OpenForWriting(temporary, O_EXCL);
  if (!file.ok()) {
    ForgetOnSignals();
    throw Failure{file.status()};
  }
  file_ = *file;
  temporary_ = temporary;
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  if (file_ >= 0) ::close(file_);
  ::unlink(temporary_.c_str());
  ForgetOnSignals();
}

void OutputFile::Write(std::string_view text) {
  if (path_.empty()) return WriteOut(text);
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) Flush();
}

void OutputFile::Flush() {
  OrFail(WriteAll(file_, path_, buffer_));
  buffer_.clear();
}

void OutputFile::Finish() {
  if (path_.empty()) return;
  Flush();
  if (::fsync(file_) != 0) throw Failure{FileError(path_, "sync", errno)};
  // Some file systems report a full disk only at a close.
  if (::close(std::exchange(file_, -1)) != 0) throw Failure{FileError(path_, "close", errno)};
  OrFail(RenameFile(temporary_, path_));
  temporary_.clear();
  ForgetOnSignals();
}

}  // namespace kvstore::cli
