#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvstore::cli {

/// The file that a command writes its data to, or standard output: the counterpart of InputFile. A file gets
/// its name only when it is complete, so that half of it is never taken for all of it; one that has the name
/// already stays until then. Only the owner can read it. The data that an unfinished command has written is
/// removed, also when SIGHUP, SIGINT or SIGTERM ends the process; after a kill -9, PATH.????????.new is left.
/// A process has at most one at a time. Externally synchronised.
class OutputFile {
 public:
  /// path  where the file is to be, the value of the command's option --to; "-" stands for standard output.
  ///
  /// Throws Failure if a link, a folder or a device has that name, or if the file cannot be made.
  explicit OutputFile(const std::string& path);
  /// Removes the file unless Finish has succeeded.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws Failure, or OutputLost if it is standard output.
  void Write(std::string_view text);
  /// Gives the file its name, once everything is on disk. Throws Failure. Nothing may be written afterwards.
  void Finish();

 private:
  void Flush();

  std::filesystem::path path_;       // absolute; empty: standard output
  std::filesystem::path temporary_;  // the name until Finish; empty: there is no unfinished file
  int file_ = -1;
  std::string buffer_;
};

}  // namespace kvstore::cli
