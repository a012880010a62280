#pragma once

#include "backend_api/change_capture.h"
#include "backend_api/migration_control.h"
#include "backend_api/unit_reader.h"
#include "backend_api/unit_writer.h"

namespace kvstore {

/// A dataset in one backend, as a migration sees it, which needs all four: it reads units on either side,
/// writes them to the copy, follows the changes of the truth, and decides which side serves. Only the worker
/// of a migration has one; docs/migrating.md has the protocol that is built on it. Thread-safe.
///
/// The four share one extent (MigrationControl::Limit) and one epoch. The reader reads the dataset in any
/// state, also while clients are refused.
///
/// Code that needs less should take less: a copy needs a UnitReader and a UnitWriter, for example.
class MigrationEndpoint : public UnitReader,
                          public UnitWriter,
                          public ChangeCapture,
                          public MigrationControl {};

}  // namespace kvstore
