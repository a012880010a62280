#include "bench/backup/curl.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "bench/harness/child.h"
#include "blobstore/credentials.h"
#include "blobstore/s3_location.h"
#include "blobstore/s3_request.h"
#include "blobstore/sha256.h"

namespace kvstore::bench {

absl::Status FetchByCurl(std::string_view url, const std::vector<std::string_view>& blobs, size_t parallel,
                         const std::filesystem::path& folder) {
  const auto location = s3::LocateS3(url, {});
  if (!location.ok()) return location.status();
  const auto credentials = s3::CredentialSource("", "default").Current();
  if (!credentials.ok()) return credentials.status();
  std::filesystem::create_directories(folder);

  const std::string nothing = Hex(Sha256Of(""));
  const auto now_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count());
  const std::filesystem::path config = folder / "curl.config";
  {
    std::ofstream lines(config);
    for (size_t i = 0; i < blobs.size(); ++i) {
      const s3::S3Request request = s3::SignRequest(
          *location, *credentials,
          {.method = "GET", .name = blobs[i], .query = {}, .headers = {}, .body_sha256 = nothing}, now_ms);
      lines << (i > 0 ? "next\n" : "")
            << fmt::format("url = \"{}\"\noutput = \"{}/{}\"\n", request.url, folder.string(), i)
            << "fail\nsilent\nshow-error\n";
      for (const std::string& header : request.headers) lines << fmt::format("header = \"{}\"\n", header);
    }
  }
  // It answers when curl has ended.
  auto shell =
      Child::StartAnswering({"sh", "-c",
                             fmt::format("read go && curl --silent --show-error --parallel --parallel-max {} "
                                         "--config '{}' >&2 && echo done || echo failed",
                                         parallel, config.string())});
  if (!shell.ok()) return shell.status();
  const auto answer = shell->Ask("go");
  if (!answer.ok()) return answer.status();
  return *answer == "done" ? absl::OkStatus() : absl::UnavailableError("curl has failed");
}

}  // namespace kvstore::bench
