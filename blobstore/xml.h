#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::s3 {

/// An element of an XML document. Attributes are not kept: S3's answers have none that matter.
struct XmlElement {
  std::string name;
  std::string text;  ///< All text in it, but not that of its children.
  std::vector<XmlElement> children;

  /// Returns the first child of this name; null if there is none.
  const XmlElement* Child(std::string_view child) const;
  /// Returns the text of the first child of this name; empty if there is none.
  std::string TextOf(std::string_view child) const;
};

/// Parses a document that a server has sent. DATA_LOSS if it is malformed, declares a document type (and with
/// it entities, which may grow without bound), nests deeper than 16 or has more than 50,000 elements; the
/// caller bounds its bytes.
absl::StatusOr<XmlElement> ParseXml(std::string_view text);

}  // namespace kvstore::s3
