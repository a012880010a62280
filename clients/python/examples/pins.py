#!/usr/bin/env python3
"""Rows, objects and mappings from Python:  pins.py ADDRESS

PYTHONPATH=build/release/python has the client, once it is built.
"""

import json
import sys

import kvstore


def main(address):
    with kvstore.Client(address) as store:
        known = {dataset.name for dataset in store.list_datasets()}
        for name, shape in (("py_events", "rows"), ("py_pins", "objects"), ("py_boards", "mappings")):
            if name in known:
                store.drop_dataset(name)
            store.create_dataset(name, shape, **({"max_versions": 3} if shape == "rows" else {}))

        for n in range(5):
            store.put_row("py_events", "user:7", {"click": f"pin:{n}"})
        row = store.get_row("py_events", "user:7", versions=10)
        print("the newest clicks of user:7:", [cell.value.decode() for cell in row[b"click"]])

        board = store.create_object("py_pins", '{"board": "chairs"}')
        for title in ("a chair", "a lamp"):
            # On the board's shard, so that what is read together lies together.
            pin = store.create_object("py_pins", json.dumps({"title": title}), near=board)
            store.add_mapping("py_boards", board, pin)
        store.update_object("py_pins", pin, '{"liked": true}')
        ids = [to for to, _ in store.list_mapping("py_boards", board)]
        for found in store.get_objects("py_pins", ids):
            print("on the board:", found.data.decode())

        print("scanned:", [key.decode() for key, _ in store.scan_rows("py_events")])

        for name in ("py_events", "py_pins", "py_boards"):
            store.drop_dataset(name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
