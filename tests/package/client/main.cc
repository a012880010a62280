#include <iostream>

#include "kvstore_api/connect.h"

/// Reads a cell from a server: client ADDRESS
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto store = kvstore::Connect(argv[1]);
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return 1;
  }
  const auto row = (*store)->GetRow("events", "user:7", {});
  if (!row.ok()) {
    std::cerr << row.status() << "\n";
    return 1;
  }
  std::cout << row->items[0].column << "=" << row->items[0].cells[0].value << "\n";
}
