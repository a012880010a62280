/* The protocol of docs/migrating.md: two sides, two partitions of one unit each, a client that writes, one that reads,
 * both with any route, a worker that moves there and back, and an earlier worker that was paused and goes on at any
 * time, and a failover of the target, once, before it serves, that takes back what was copied there and its epoch.
 * tests/model/run searches all of its states, and those of mutants, each with one rule left out (-DNAME):
 *
 *   REMOVE_UNREAD         a drain removes entries that it has not listed
 *   READ_BEFORE_LIST      a drain reads a unit before it lists its entries
 *   DRAIN_BEFORE_FREEZE   the log is found empty, and then writes are frozen
 *   PUTS_ONLY             deletes are not recorded
 *   READ_AFTER_MOVED      the source is read when it has moved
 *   OPEN_WITHOUT_CAPTURE  what is written to the side that has just begun to serve is not recorded
 *   NO_FENCE              a replace does not look at the epoch
 *   IDS_RESTART           IDs of entries begin anew when the log is empty, and a removal does not look at the epoch
 *   OPEN_BEFORE_MOVED     the target serves while the source still does
 *   OPEN_UNSEEN           the target serves without a look at whether it is still what was compared
 *
 * With -DCALM there is no failover: cutover.pml has those, and the states of both together are for the long form.
 *
 * A unit's content is the number of its last write; writes with even numbers are deletes, which matters for PUTS_ONLY.
 */

#define PARTS 2
#ifndef WRITES
#define WRITES 2
#endif

/* EndpointState */
#define ABSENT 0
#define IMPORTING 1
#define SERVING 2
#define FROZEN 3
#define MOVED 4

#define AT(side, part) ((side) * PARTS + (part))

byte state[4];
byte data[4];     /* the number of the unit's last write */
bool capture[4];
byte dirty[4];    /* the log: a bit for each entry */
byte next_id[4];
byte epoch[4];
byte catalog;     /* which side clients look at first */
byte issued[PARTS];
byte acked[PARTS];
byte boot;        /* of the target: another one after its failover */
bool ended;

/* A client's write, atomic in the backend. */
inline record(side, part, number) {
  if
#ifdef PUTS_ONLY
  :: capture[AT(side, part)] && (number % 2 == 1) ->
#else
  :: capture[AT(side, part)] ->
#endif
#ifdef IDS_RESTART
    if
    :: dirty[AT(side, part)] == 0 -> next_id[AT(side, part)] = 0
    :: else
    fi;
#endif
    dirty[AT(side, part)] = dirty[AT(side, part)] | (1 << next_id[AT(side, part)]);
    next_id[AT(side, part)]++
  :: else
  fi
}

proctype Writer() {
  byte part, side, number, left = WRITES;
  do
  :: left > 0 ->
    left--;
    if
    :: part = 0
    :: part = 1
    fi;
    atomic { issued[part]++; number = issued[part] };
    side = catalog;
    do
    :: atomic {
         state[AT(side, part)] == SERVING ->
         data[AT(side, part)] = number;
         record(side, part, number);
         acked[part] = number;
         break
       }
    :: state[AT(side, part)] != SERVING -> side = 1 - side /* a stale route, or the right one */
    od
  :: left == 0 -> break
  od
}

proctype Reader(byte part) {
  byte side, least, last, left = 2;
  do
  :: left > 0 ->
    left--;
    atomic { least = acked[part]; side = catalog };
    if
    :: side = 0
    :: side = 1
    fi;
    do
    :: atomic {
#ifdef READ_AFTER_MOVED
         state[AT(side, part)] == SERVING || state[AT(side, part)] == FROZEN || state[AT(side, part)] == MOVED ->
#else
         state[AT(side, part)] == SERVING || state[AT(side, part)] == FROZEN ->
#endif
         assert(data[AT(side, part)] >= least);
         assert(data[AT(side, part)] >= last);
         last = data[AT(side, part)];
         break
       }
    :: state[AT(side, part)] != SERVING && state[AT(side, part)] != FROZEN -> side = 1 - side
    od
  :: left == 0 -> break
  od
}

/* A replace, with its fence, atomic in the backend. */
inline replace(side, part, by, content) {
  atomic {
    if
#ifdef NO_FENCE
    :: state[AT(side, part)] == IMPORTING || state[AT(side, part)] == MOVED ->
#else
    :: epoch[AT(side, part)] == by && (state[AT(side, part)] == IMPORTING || state[AT(side, part)] == MOVED) ->
#endif
      data[AT(side, part)] = content
    :: else
    fi
  }
}

inline remove(side, part, by, ids) {
  atomic {
    if
#ifdef IDS_RESTART
    :: true ->
#else
    :: epoch[AT(side, part)] == by ->
#endif
#ifdef REMOVE_UNREAD
      dirty[AT(side, part)] = 0
#else
      dirty[AT(side, part)] = dirty[AT(side, part)] & (255 - ids)
#endif
    :: else
    fi
  }
}

/* Copies what one partition's log has. */
inline drain(from, part, by) {
#ifdef READ_BEFORE_LIST
  content = data[AT(from, part)];
  ids = dirty[AT(from, part)];
#else
  ids = dirty[AT(from, part)];
  content = data[AT(from, part)];
#endif
  if
  :: ids != 0 ->
    replace(1 - from, part, by, content);
    remove(from, part, by, ids)
  :: else
  fi
}

inline drain_all(from, by) {
  do
  :: dirty[AT(from, 0)] != 0 -> drain(from, 0, by)
  :: dirty[AT(from, 1)] != 0 -> drain(from, 1, by)
  :: dirty[AT(from, 0)] == 0 && dirty[AT(from, 1)] == 0 -> break
  od
}

inline enter(side, part, to, captures) {
  atomic { state[AT(side, part)] = to; capture[AT(side, part)] = captures }
}

/* Sets `opened` if the other side serves when it ends; otherwise `from` does, as before. */
inline cutover(from, by) {
#ifdef DRAIN_BEFORE_FREEZE
  drain_all(from, by);
#endif
  enter(from, 0, FROZEN, 1);
  enter(from, 1, FROZEN, 1);
#ifndef DRAIN_BEFORE_FREEZE
  drain_all(from, by);
#endif
#ifdef OPEN_BEFORE_MOVED
  enter(1 - from, 0, SERVING, 1);
  enter(1 - from, 1, SERVING, 1);
  enter(from, 0, SERVING, 1);
#endif
  enter(from, 0, MOVED, 1);
  enter(from, 1, MOVED, 1);
  atomic {
#ifdef OPEN_UNSEEN
    opened = true;
#else
    opened = (boot == compared);
#endif
    if
#ifdef OPEN_WITHOUT_CAPTURE
    :: opened -> state[AT(1 - from, 0)] = SERVING; capture[AT(1 - from, 0)] = 0
#else
    :: opened -> state[AT(1 - from, 0)] = SERVING; capture[AT(1 - from, 0)] = 1
#endif
    :: else
    fi
  }
  if
  :: opened ->
#ifdef OPEN_WITHOUT_CAPTURE
    enter(1 - from, 1, SERVING, 0);
    capture[AT(1 - from, 0)] = 1;
    capture[AT(1 - from, 1)] = 1;
#else
    enter(1 - from, 1, SERVING, 1);
#endif
    catalog = 1 - from
  :: else ->
    enter(from, 0, SERVING, 1);
    enter(from, 1, SERVING, 1)
  fi
}

/* The worker before: has epoch 1, listed and read the first partition, and was paused at any of its steps. */
proctype Paused() {
  byte content, ids;
  capture[AT(0, 0)] -> skip;
  drain(0, 0, 1)
}

/* Its epoch is 2, and 3 when it has to begin again. */
proctype Worker() {
  byte content, ids, part, by = 2, compared;
  bool opened;
  do
  :: compared = boot;
    /* First the epochs, of all partitions on both sides; then anything else. */
    epoch[AT(0, 0)] = by;
    epoch[AT(0, 1)] = by;
    epoch[AT(1, 0)] = by;
    epoch[AT(1, 1)] = by;
    /* The backfill of what the earlier one may not have copied. */
    for (part : 0 .. PARTS - 1) {
      content = data[AT(0, part)];
      replace(1, part, by, content)
    }
    /* Any number of drains, none too. */
    do
    :: drain(0, 0, by)
    :: drain(0, 1, by)
    :: break
    od;
    cutover(0, by);
    if
    :: opened -> break
    :: else -> by++
    fi
  od;
  do
  :: drain(1, 0, by)
  :: drain(1, 1, by)
  :: break
  od;
  if
  :: cutover(1, by)   /* back */
  :: skip
  fi;
  /* At rest, with nobody writing, the copy is what the truth is. */
  ended && (issued[0] + issued[1] == WRITES) -> skip;
  drain_all(catalog, by);
  assert(data[AT(0, 0)] == data[AT(1, 0)]);
  assert(data[AT(0, 1)] == data[AT(1, 1)]);
  assert(data[AT(catalog, 0)] == issued[0] && data[AT(catalog, 1)] == issued[1])
}

/* The target's replica is promoted, and had nothing of what was copied. */
proctype Failover() {
end:
  atomic {
    state[AT(1, 0)] == IMPORTING && state[AT(1, 1)] == IMPORTING && ! ended ->
    data[AT(1, 0)] = 0; data[AT(1, 1)] = 0;
    epoch[AT(1, 0)] = 1; epoch[AT(1, 1)] = 1;
    boot++
  }
}

init {
  atomic {
    /* The earlier worker had come so far: the target is importing, writes are recorded. */
    state[AT(0, 0)] = SERVING; state[AT(0, 1)] = SERVING;
    state[AT(1, 0)] = IMPORTING; state[AT(1, 1)] = IMPORTING;
    capture[AT(0, 0)] = 1; capture[AT(0, 1)] = 1;
    epoch[AT(0, 0)] = 1; epoch[AT(0, 1)] = 1; epoch[AT(1, 0)] = 1; epoch[AT(1, 1)] = 1;
#ifndef CALM
    run Failover();
#endif
    run Writer(); run Reader(0); run Paused(); run Worker()
  };
  _nr_pr == 2 || (acked[0] + acked[1] == WRITES) -> ended = true
}
