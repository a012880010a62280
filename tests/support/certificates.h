#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace kvstore::testing {

/// A certificate authority, which issues certificates as PEM files in a folder.
class Authority {
 public:
  /// name  The name of its files: NAME.pem is its own certificate.
  Authority(std::filesystem::path folder, const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// "FOLDER/NAME.pem"
  std::string file() const;

  struct Files {
    std::string cert;
    std::string key;
  };
  /// Issues a certificate for `common_name`, valid for 127.0.0.1 and localhost.
  ///
  /// days  How many days from now on it is valid; it began to be a day ago. 0 or fewer: it has expired.
  Files Issue(const std::string& common_name, int days = 1);

 private:
  struct Keys;
  const std::filesystem::path folder_;
  const std::string name_;
  std::unique_ptr<Keys> own_;
  long serial_ = 1;
};

}  // namespace kvstore::testing
