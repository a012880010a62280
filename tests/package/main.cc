#include <iostream>

#include "kvstore_api/connect.h"
#include "kvstore_api/open.h"

/// Uses a store in this process, and one behind a server: consumer DIR ADDRESS
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto embedded = kvstore::Open({.data = argv[1]});
  auto remote = kvstore::Connect(argv[2]);
  for (auto* store : {&embedded, &remote}) {
    if (!store->ok()) {
      std::cerr << store->status() << "\n";
      return 1;
    }
    const kvstore::CellWrite cell{"click", "pin:3"};
    const absl::Status made = (**store)->CreateDataset({.name = "events"});
    const auto put = (**store)->PutRow("events", "user:7", {&cell, 1}, {});
    const auto row = (**store)->GetRow("events", "user:7", {});
    if (!made.ok() || !put.ok() || !row.ok()) {
      std::cerr << made << " " << put.status() << " " << row.status() << "\n";
      return 1;
    }
    std::cout << row->items[0].column << "=" << row->items[0].cells[0].value << "\n";
  }
}
