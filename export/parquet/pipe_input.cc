#include "export/parquet/pipe_input.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace kvstore::columnar {

arrow::Result<size_t> PipeInput::Read(void* to, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t read = ::read(file_, static_cast<char*>(to) + done, size - done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return arrow::Status::IOError("cannot read standard input: ", std::strerror(errno));
    if (read == 0) break;
    done += static_cast<size_t>(read);
  }
  return done;
}

arrow::Status PipeInput::ReadMagic() {
  std::string magic(pipe::kMagic.size(), '\0');
  ARROW_ASSIGN_OR_RAISE(const size_t size, Read(magic.data(), magic.size()));
  if (size == magic.size() && magic == pipe::kMagic) return arrow::Status::OK();
  return arrow::Status::Invalid("standard input is no table: it does not begin with ",
                                std::string(pipe::kMagic));
}

arrow::Result<PipeInput::Frame> PipeInput::Next() {
  uint32_t header[2] = {};
  ARROW_ASSIGN_OR_RAISE(const size_t header_size, Read(header, sizeof(header)));
  if (header_size < sizeof(header)) {
    return arrow::Status::Invalid("the table is cut off: its writer has ended before its last frame");
  }
  const auto [kind, size] = header;
  if (kind < static_cast<uint32_t>(pipe::FrameKind::kSchema) ||
      kind > static_cast<uint32_t>(pipe::FrameKind::kEnd)) {
    return arrow::Status::Invalid("a frame has the unknown kind ", kind);
  }
  if (size > pipe::kMaxFrameBytes) {
    return arrow::Status::Invalid("a frame has ", size, " bytes, the limit is ", pipe::kMaxFrameBytes);
  }
  buffer_.resize((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  ARROW_ASSIGN_OR_RAISE(const size_t read, Read(buffer_.data(), size));
  if (read < size) return arrow::Status::Invalid("a frame is cut off");
  return Frame{static_cast<pipe::FrameKind>(kind), {reinterpret_cast<const char*>(buffer_.data()), size}};
}

arrow::Status PipeInput::CheckEnd() {
  char byte = 0;
  ARROW_ASSIGN_OR_RAISE(const size_t size, Read(&byte, 1));
  return size == 0 ? arrow::Status::OK() : arrow::Status::Invalid("bytes follow the table's last frame");
}

}  // namespace kvstore::columnar
