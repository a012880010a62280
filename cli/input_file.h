#pragma once

#include <cstdint>
#include <string>

namespace kvstore::cli {

/// An open file that a command reads, or standard input; closes it.
class InputFile {
 public:
  /// path  "-" stands for standard input.
  ///
  /// Throws Failure.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The file descriptor.
  int file() const { return file_; }
  /// In bytes; 0 if it is not known, as of a pipe.
  uint64_t size() const { return size_; }
  /// When the file was last written, in ns since 1970; 0 if size() is not known.
  uint64_t written_ns() const { return written_ns_; }
  /// Goes to this byte of the file. Throws Failure.
  void Skip(uint64_t bytes) const;

 private:
  const int file_;
  uint64_t size_ = 0;
  uint64_t written_ns_ = 0;
};

}  // namespace kvstore::cli
