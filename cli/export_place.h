#pragma once

#include <memory>
#include <string>

#include "blobstore/blob_store.h"
#include "cli/command.h"

/// Where exports as Parquet are: folders in a folder or in a bucket of S3.
namespace kvstore::cli {

/// Opens the place for exports that an option names: DIR, file:DIR, or s3://BUCKET/PREFIX, which is reached
/// as the configuration says for backups, or else the environment. Throws Failure.
std::unique_ptr<BlobStore> OpenExports(const Globals& globals, const std::string& place);

/// An export, by its own name and the place in which it is.
struct ExportPlace {
  std::string place;  ///< As for OpenExports.
  std::string id;
};
/// Divides the name of an export: "s3://bucket/exports/ID", "exports/ID". Throws Failure if it is none, and
/// if there is no such folder.
ExportPlace FindExportPlace(std::string name);

}  // namespace kvstore::cli
