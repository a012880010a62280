#include "export/parquet_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "kvstore_api/call_scope.h"

namespace kvstore::exports {
namespace {

/// Callers look so often whether their call has ended.
constexpr int kAwaitMs = 50;
constexpr size_t kTakeBytes = size_t{256} << 10;
/// The bytes that pipes hold, so that the two programs seldom wait for each other.
constexpr int kPipeBytes = 1 << 20;
constexpr std::string_view kParquetMark = "PAR1";

/// Most files have no more. Memory that is reserved and not written is not taken.
constexpr size_t kReservedBytes = size_t{48} << 20;

absl::Status PipeError(std::string_view action, int error) {
  return absl::UnavailableError(fmt::format("cannot {} kv-parquet: {}", action, std::strerror(error)));
}

/// Two descriptors that are connected.
struct Ends {
  Descriptor ours;
  Descriptor theirs;
};

/// Makes the input of the program. It is a socket, because a write to a pipe that has lost its reader raises
/// SIGPIPE.
absl::StatusOr<Ends> InputOfProgram() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return PipeError("make a socket to", errno);
  }
  return Ends{Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Makes the output of the program.
absl::StatusOr<Ends> OutputOfProgram() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return PipeError("make a pipe to", errno);
  Ends made{Descriptor(ends[0]), Descriptor(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return PipeError("set up a pipe to", errno);
  // If this user has used up what pipes may hold, it holds less.
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParquetWriter>> ParquetWriter::Start(const std::string& program,
                                                                    const pipe::Schema& schema) {
  auto in = InputOfProgram();
  if (!in.ok()) return in.status();
  auto out = OutputOfProgram();
  if (!out.ok()) return out.status();
  auto child = ChildProgram::Start({program, "write"}, in->theirs.get(), out->theirs.get());
  if (!child.ok()) return child.status();
  std::unique_ptr<ParquetWriter> writer(
      new ParquetWriter(*std::move(child), std::move(in->ours), std::move(out->ours)));
  writer->file_.reserve(kReservedBytes);
  // The program has its own ends now. Each side sees that the other has gone when no such end is open.
  in->theirs = Descriptor();
  out->theirs = Descriptor();
  if (auto status = writer->Send(pipe::BeginFrame(schema)); !status.ok()) return status;
  return writer;
}

absl::Status ParquetWriter::Write(pipe::BatchBuilder& rows) {
  for (const std::string_view part : rows.Frame()) {
    if (auto status = Send(part); !status.ok()) return status;
  }
  rows_ += rows.rows();
  ++row_groups_;
  rows.Clear();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParquetWriter::Finish() {
  if (auto status = Send(pipe::EndFrame(rows_)); !status.ok()) return status;
  to_ = Descriptor();
  while (!at_end_) {
    if (auto status = Await(/*to_send=*/false); !status.ok()) return status;
    if (auto status = Take(); !status.ok()) return status;
  }
  if (auto status = program_.Wait(); !status.ok()) return status;
  const bool is_parquet = file_.size() >= 3 * kParquetMark.size() && file_.starts_with(kParquetMark) &&
                          file_.ends_with(kParquetMark);
  if (!is_parquet) return absl::DataLossError("kv-parquet: what it has written is no Parquet file");
  return std::move(file_);
}

absl::Status ParquetWriter::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (auto status = Await(/*to_send=*/true); !status.ok()) return status;
    if (auto status = Take(); !status.ok()) return status;
    if (at_end_) return EndedEarly();
    if (!can_send_) continue;
    const ssize_t sent = ::send(to_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return EndedEarly();
    } else if (errno != EAGAIN && errno != EINTR) {
      return PipeError("write to", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status ParquetWriter::Await(bool to_send) {
  if (auto status = CheckCall(); !status.ok()) return status;
  // poll leaves out an entry with a negative descriptor.
  std::array<pollfd, 2> ends{{{from_.get(), POLLIN, 0}, {to_send ? to_.get() : -1, POLLOUT, 0}}};
  if (::poll(ends.data(), ends.size(), kAwaitMs) < 0 && errno != EINTR) {
    return PipeError("wait for", errno);
  }
  can_take_ = ends[0].revents != 0;
  can_send_ = ends[1].revents != 0;
  return absl::OkStatus();
}

absl::Status ParquetWriter::Take() {
  while (can_take_) {
    const size_t before = file_.size();
    file_.resize(before + kTakeBytes);
    const ssize_t size = ::read(from_.get(), file_.data() + before, kTakeBytes);
    const int error = errno;
    file_.resize(before + (size > 0 ? static_cast<size_t>(size) : 0));
    if (size == 0) at_end_ = true;
    if (size < 0 && error != EAGAIN && error != EINTR) return PipeError("read from", error);
    can_take_ = size > 0;
    if (file_.size() > kMaxParquetBytes) {
      return absl::ResourceExhaustedError(fmt::format(
          "kv-parquet: a file has more than {} bytes, which is the most allowed", kMaxParquetBytes));
    }
  }
  return absl::OkStatus();
}

absl::Status ParquetWriter::EndedEarly() {
  // If it still waits for one of these, it ends.
  to_ = Descriptor();
  from_ = Descriptor();
  if (auto status = program_.Wait(); !status.ok()) return status;
  return absl::DataLossError("kv-parquet: it has ended before its input did");
}

}  // namespace kvstore::exports
