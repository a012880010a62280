#include "assembly/operate_config.h"

#include <fmt/format.h>

#include <string>

#include "assembly/config_fields.h"

namespace kvstore {
namespace {

void ReadFence(JsonFields& fields, const std::filesystem::path& folder, operate::OperateOptions& options) {
  if (fields.Find("fence") == nullptr) return;
  const auto& words = fields.Array("fence");
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].is_string() && !words[i].get<std::string>().empty()) {
      options.fence.push_back(words[i].get<std::string>());
    } else {
      fields.Fail(fmt::format("fence[{}]", i),
                  "must be a string that is not empty: a program, or one of its arguments");
    }
  }
  if (words.empty() && fields.Find("fence")->is_array()) {
    fields.Fail("fence", "is an empty list: name a program, or leave the field out");
  }
  if (options.fence.empty()) return;
  // One that is looked up in the PATH has no slash.
  std::string& program = options.fence.front();
  if (program.find('/') != std::string::npos) program = (folder / program).string();
}

}  // namespace

void ReadOperateOptions(JsonFields& fields, const std::filesystem::path& folder,
                        operate::OperateOptions& options) {
  options.http = fields.OptionalString("http").value_or("");
  options.webhook = ReadSecret(fields, "webhook", folder);
  if (!options.webhook.empty() && !options.webhook.starts_with("http://") &&
      !options.webhook.starts_with("https://")) {
    fields.Fail("webhook", "must be an address that begins with http:// or https://");
  }
  ReadFence(fields, folder, options);
  ReadUint(fields, "fence_ms", 100, 600'000, options.fence_ms);
  ReadUint(fields, "look_ms", 100, 60'000, options.look_ms);
  ReadUint(fields, "purge_hour", 0, 24, options.purge_hour);
  options.journal = PathIn(fields, "journal", folder);
}

}  // namespace kvstore
